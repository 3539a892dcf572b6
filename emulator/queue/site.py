"""An emulated site: an account without records, its login host and its nodes, who may log in, and the files that configure them."""

import secrets
import shlex
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

import docker
import docker.errors
import requests.exceptions
import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from emulator.machines.host_tools import kept_text, write_private
from emulator.machines.machine_mount import CLOUD_CONFIG
from emulator.machines.spec import Access, MachineSpec
from emulator.queue.settings import LOGIN, LOGIN_ID, QUEUE_IMAGE, Settings
from emulator.shared.account import EmulatedAccount
from emulator.shared.machine_reconciler import MachineSource, Target
from emulator.shared.store import Store
from emulator.shared.vendor import Vendor

DOMAIN = "site.internal"
ACCESS = Access(private_mbps=10_000)
# Slurm's ids of nodes; `config_overrides` lets a small computer pretend to have the processors that the site has.
# The controller's own file has the number of the first job too (images/queue/site), so the files differ: NO_CONF_HASH.
SLURM_CONF = """ClusterName={cluster}
SlurmctldHost={login}
SlurmUser=root
StateSaveLocation=/var/spool/slurm/ctld
SlurmdSpoolDir=/var/spool/slurm/d
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
SlurmdLogFile=/var/log/slurmd.log
SlurmctldLogFile=/var/log/slurmctld.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
SchedulerParameters=bf_interval=5,sched_min_interval=500000
ReturnToService=2
KillWait={kill_wait_s}
MpiDefault=none
DebugFlags=NO_CONF_HASH
PlugStackConfig=/etc/slurm/plugstack.conf
TaskProlog=/etc/slurm/task-prolog
NodeName={nodes} CPUs=8 CoresPerSocket=8 RealMemory=1000
PartitionName=gpu Nodes=ALL Default=YES DefaultTime=60 MaxTime=480 OverSubscribe=EXCLUSIVE State=UP
PartitionName=gpu-long Nodes=ALL DefaultTime=480 MaxTime=2880 OverSubscribe=EXCLUSIVE State=UP
"""
# What root runs before the daemons start. Nobody but root logs in to a node, as at strict sites.
CONFIGURE = """set -eu
printf '%s' {hosts} >/etc/hosts
printf '%s' {conf} >/etc/slurm/slurm.conf
printf '%s' {munge} >/etc/munge/munge.key
chown munge:munge /etc/munge/munge.key
chmod 400 /etc/munge/munge.key
mkdir -p /var/spool/slurm/ctld /var/spool/slurm/d
echo 'AllowUsers {users}' >/etc/ssh/sshd_config.d/users.conf
"""
CLIENT_FILE = "ssh_config"
USER, USER_KEY, HOST_KEY, MUNGE_KEY = "researcher", "researcher_ed25519", "login_host_ed25519", "munge.key"
MUNGE_KEY_BYTES = 96
# As a person has it in ~/.ssh/config; the address is that of the site's first machine.
SSH_CONFIG = """Host {alias}
    HostName {address}
    User {user}
    IdentityFile {key}
    UserKnownHostsFile {known}
    IdentitiesOnly yes
"""
KNOWN_HOSTS = "known_hosts"
LIST_JOBS = ("squeue", "--noheader", "--format=%i %j %u %T")


class Records(Store):
    """An empty store: Slurm has the jobs and nodes."""

    KINDS: ClassVar[Mapping[str, type]] = {}
    RESET: ClassVar[str] = "python -m emulator reset queue"


class Account(EmulatedAccount):
    """The site, and what was wrong with each of its machines when that was last looked at."""

    settings: Settings
    RECORDS = Records

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.machines: dict[int, str] = {}


class Site(MachineSource):
    """Machines of a site for the reconciler: always up, with no event by the clock."""

    def __init__(self, account: Account) -> None:
        self._account = account

    def advance(self) -> bool:
        return False

    def next_moment(self) -> float | None:
        return None

    def ids(self) -> list[int]:
        """The login host and the nodes."""
        return list(self._account.settings.names)

    def target(self, number: int) -> Target:
        return Target(spec=_spec(self._account.settings, number), access=ACCESS)

    def report(self, number: int, target: Target, error: str | None) -> None:
        """Remember what is wrong with a machine, for the status."""
        self._account.machines[number] = error or ""


def slurm_conf(settings: Settings) -> str:
    """The configuration of Slurm on every machine."""
    nodes = [name for name in settings.names.values() if name != LOGIN]
    of_site = {"cluster": settings.account_name, "nodes": ",".join(nodes), "kill_wait_s": settings.kill_wait_s}
    return SLURM_CONF.format(login=LOGIN, **of_site)


def _spec(settings: Settings, number: int) -> MachineSpec:
    is_login = number == LOGIN_ID
    hosts = ["127.0.0.1 localhost", *(f"{settings.address_of(each)} {name}" for each, name in settings.names.items())]
    texts = {"hosts": "\n".join([*hosts, ""]), "conf": slurm_conf(settings), "munge": munge_key(settings)}
    quoted = {name: shlex.quote(text) for name, text in texts.items()}
    return MachineSpec(
        guest_id=number,
        hostname=settings.names[number],
        domain=DOMAIN,
        router_id=1,
        private_address=settings.address_of(number),
        ssh_keys=(authorized_key(settings),) if is_login else (),
        user_data=login_host_key(settings) if is_login else "",
        image=QUEUE_IMAGE,
        startup_script=CONFIGURE.format(users=USER if is_login else "root", **quoted),
        shares_home=True,
    )


def write_client_file(settings: Settings) -> Path:
    """Write the file for ssh, with everything that it names."""
    address = settings.address_of(LOGIN_ID)
    write_private(settings.state / KNOWN_HOSTS, f"{address} {_public(_private(settings, HOST_KEY))}\n")
    named = {"key": settings.state / USER_KEY, "known": settings.state / KNOWN_HOSTS}
    _private(settings, USER_KEY)
    path = settings.state / CLIENT_FILE
    write_private(path, SSH_CONFIG.format(alias=LOGIN, address=address, user=USER, **named))
    return path


def authorized_key(settings: Settings) -> str:
    """The public line of the user's key."""
    return _public(_private(settings, USER_KEY))


def login_host_key(settings: Settings) -> str:
    """The login host's private key, as cloud-init takes it."""
    return f"{CLOUD_CONFIG}\n" + yaml.safe_dump({"ssh_keys": {"ed25519_private": _private(settings, HOST_KEY)}})


def munge_key(settings: Settings) -> str:
    """The secret by which the site's daemons know each other."""
    return kept_text(settings.state / MUNGE_KEY, lambda: secrets.token_hex(MUNGE_KEY_BYTES))


def _private(settings: Settings, name: str) -> str:
    """A private key of the site, made when it is first asked for.

    Its text is that of the file: writing the same key again gives another text, and a machine with another text is another one.
    """
    return kept_text(settings.state / name, _new_key)


def _new_key() -> str:
    private = Ed25519PrivateKey.generate()
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption())
    return private.private_bytes(*form).decode()


def _public(private: str) -> str:
    key = serialization.load_ssh_private_key(private.encode(), password=None).public_key()
    return key.public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH).decode()


def holdings(account: Account) -> dict[str, Any]:
    """Status of a site: its jobs, listed as rented, and its machines, which are always there."""
    settings, jobs = account.settings, _jobs(account)
    return {
        "machines": [],
        "site": [
            {"name": name, "address": settings.address_of(number), "error": account.machines.get(number, "not up yet")}
            for number, name in settings.names.items()
        ],
        "jobs": jobs,
        "open_billing_items": len(jobs),
        "bill": "0.00",
        "currency": "USD",
        "clock": datetime.fromtimestamp(account.now, UTC).isoformat(timespec="seconds"),
    }


def _jobs(account: Account) -> list[str]:
    """The jobs in the queue, one line each; none while the login host does not run."""
    if account.settings.machines == "none":
        return []
    try:
        login = docker.from_env().containers.get(f"{account.settings.account_name}-{LOGIN_ID}")
        code, output = login.exec_run(LIST_JOBS)
    except (docker.errors.DockerException, requests.exceptions.RequestException):
        return []
    return output.decode(errors="replace").splitlines() if code == 0 else []


QUEUE = Vendor(
    settings=Settings,
    folder="emulator-queue",
    account=Account,
    routes=lambda account: [],  # people reach a queue over ssh
    machine_source=Site,
    holdings=holdings,
    client_file=CLIENT_FILE,
    write_client_file=write_client_file,
    commands={},
    machines_end_with_server=True,
)
