"""An emulated site: an account without records, its login host and its nodes, and the files that configure them."""

import base64
from collections.abc import Mapping
from typing import ClassVar

from emulator.account import EmulatedAccount
from emulator.machine_reconciler import MachineSource, Target
from emulator.machines.spec import MachineSpec
from emulator.pbs.access import authorized_key, login_host_key, munge_key
from emulator.pbs.settings import LOGIN, LOGIN_ID, QUEUE_IMAGE, Settings
from emulator.store import Store

DOMAIN = "site.internal"
PRIVATE_MBPS = 10_000
# Slurm's ids of nodes; `config_overrides` lets a small computer pretend to have the processors that the site has.
# The controller's own file has the number of the first job too (images/queue/site), so the files differ: NO_CONF_HASH.
SLURM_CONF = """ClusterName=emulated
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
NodeName={nodes} CPUs={processors} CoresPerSocket={processors} RealMemory=1000
PartitionName=gpu Nodes=ALL Default=YES DefaultTime=60 MaxTime={limit} OverSubscribe=EXCLUSIVE State=UP
PartitionName=gpu-long Nodes=ALL DefaultTime=480 MaxTime={long} OverSubscribe=EXCLUSIVE State=UP
"""
# What root runs before the daemons start. Nobody but root logs in to a node, as at strict sites.
CONFIGURE = """set -eu
printf '%s' {hosts} | base64 -d >/etc/hosts
printf '%s' {conf} | base64 -d >/etc/slurm/slurm.conf
printf '%s' {munge} | base64 -d >/etc/munge/munge.key
chown munge:munge /etc/munge/munge.key
chmod 400 /etc/munge/munge.key
mkdir -p /var/spool/slurm/ctld /var/spool/slurm/d
echo 'AllowUsers {users}' >/etc/ssh/sshd_config.d/users.conf
"""


class Records(Store):
    """No records: jobs and nodes are Slurm's."""

    KINDS: ClassVar[Mapping[str, type]] = {}
    RESET: ClassVar[str] = "python -m emulator reset pbs"


class Account(EmulatedAccount):
    """The site, and what was wrong with each of its machines when that was last looked at."""

    settings: Settings
    RECORDS = Records

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.machines: dict[int, str] = {}


class Site(MachineSource):
    """What the machine reconciler asks of a site: all of its machines are always up, and nothing happens by the clock."""

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
        return Target(spec=_spec(self._account.settings, number), private_mbps=PRIVATE_MBPS)

    def report(self, number: int, target: Target, error: str | None) -> None:
        """Remember what is wrong with a machine, for the status."""
        self._account.machines[number] = error or ""


def slurm_conf(settings: Settings) -> str:
    """The configuration of Slurm on every machine."""
    nodes = [name for name in settings.names.values() if name != LOGIN]
    limit = settings.limit_minutes
    values = {"processors": settings.processors, "kill_wait_s": settings.kill_wait_s, "limit": limit, "long": 6 * limit}
    return SLURM_CONF.format(login=LOGIN, nodes=",".join(nodes), **values)


def _spec(settings: Settings, number: int) -> MachineSpec:
    is_login = number == LOGIN_ID
    hosts = ["127.0.0.1 localhost", *(f"{settings.address_of(each)} {name}" for each, name in settings.names.items())]
    texts = {"hosts": "\n".join([*hosts, ""]), "conf": slurm_conf(settings), "munge": munge_key(settings)}
    encoded = {name: base64.b64encode(text.encode()).decode() for name, text in texts.items()}
    return MachineSpec(
        guest_id=number,
        hostname=settings.names[number],
        domain=DOMAIN,
        router_id=1,
        private_address=settings.address_of(number),
        ssh_keys=(authorized_key(settings),) if is_login else (),
        user_data=login_host_key(settings) if is_login else "",
        port_speed_mbps=PRIVATE_MBPS,
        image=QUEUE_IMAGE,
        startup_script=CONFIGURE.format(users="researcher" if is_login else "root", **encoded),
        shares_home=True,
    )
