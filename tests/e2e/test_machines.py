"""Containers that play guests: what a customer sees on them, what their rules let pass, and what is left of them."""

import fcntl
import json
import os
import shlex
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import docker
import pytest
import yaml

from emulator.machines.container_machines import ContainerMachines
from emulator.machines.host_tools import LOCK_FILE, wait_until
from emulator.machines.networks import Networks
from emulator.machines.publishing import publish
from emulator.machines.registry import key_of
from emulator.machines.spec import Access, Disk, MachineError, MachineSpec, Rule

pytestmark = [pytest.mark.containers, pytest.mark.timeout(180)]

# Fixed names, so that a run also clears away what a killed one has left.
ACCOUNT, STATE = "acct-test-machines", Path(tempfile.gettempdir()) / "microcluster-test-machines"
SUBNETS, PUBLIC = {1: "10.113.7.0/26", 2: "10.113.8.0/26"}, "198.51.100.0/26"
REGISTRY, REGISTRY_PORT = "ngc.microcluster.internal", 5000
PUBLIC_GATEWAY = "198.51.100.1"
FROM_ANYWHERE = Rule("ingress", "tcp", 22, 22, ())
TO_ANYWHERE = Rule("egress", None, None, None, ())
LISTEN = (
    "setsid -f python3 -m http.server {port} >/dev/null 2>&1 </dev/null; until ss -Hltn | grep -q :{port}; do :; done"
)


@pytest.fixture
def machines() -> Iterator[ContainerMachines]:
    account = ContainerMachines(ACCOUNT, STATE, SUBNETS, PUBLIC, REGISTRY, REGISTRY_PORT)
    account.reset()
    account.open()
    yield account
    account.reset()


class Keys:
    """A login key, a host key, and ssh with nothing but them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        for name in ("login", "host"):
            argv = ("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(folder / name))
            subprocess.run(argv, check=True)
        (folder / "known_hosts").write_text(f"* {(folder / 'host.pub').read_text()}")

    @property
    def login(self) -> str:
        return (self._folder / "login.pub").read_text()

    @property
    def user_data(self) -> str:
        return "#cloud-config\n" + yaml.safe_dump(
            {"ssh_keys": {"ed25519_private": (self._folder / "host").read_text()}}
        )

    def ssh(self, address: str, command: str, *options: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        argv = ["ssh", "-F", "none", "-i", self._folder / "login", "-o", "StrictHostKeyChecking=yes"]
        argv += ["-o", f"UserKnownHostsFile={self._folder / 'known_hosts'}", "-o", "ConnectTimeout=5", *options]
        argv += ["-o", "BatchMode=yes", f"root@{address}", command]
        return subprocess.run(argv, input=stdin, capture_output=True, text=True, timeout=60, check=False)

    def told(self, address: str, command: str, stdin: str = "") -> str:
        """Output of a command that has to succeed."""
        ended = self.ssh(address, command, stdin=stdin)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout.strip()


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    return Keys(tmp_path_factory.mktemp("keys"))


def spec(keys: Keys, number: int = 0, router: int = 1) -> MachineSpec:
    return MachineSpec(
        guest_id=100 + number,
        hostname=f"gpu-{number}",
        domain="test-1f3a9c42.microcluster",
        router_id=router,
        private_address=f"10.113.{6 + router}.{10 + number}",
        public_address=f"198.51.100.{10 + number}",
        gpu_model="Tesla P100-PCIE-16GB",
        gpu_count=2,
        disks=(Disk(2, 2000),),
        ssh_keys=(keys.login,),
        user_data=keys.user_data,
    )


def reaches(address: str, port: int) -> bool:
    """Whether the host can connect."""
    try:
        socket.create_connection((address, port), timeout=1).close()
    except OSError:
        return False
    return True


def reach(keys: Keys, machine: MachineSpec, address: str, port: int) -> bool:
    """Whether a machine can connect."""
    probe = f"timeout 1 bash -c '</dev/tcp/{address}/{port}'"
    return keys.ssh(machine.public_address, probe).returncode == 0


@contextmanager
def listening_host() -> Iterator[int]:
    """A port on the host's public gateway that a machine may try to reach."""
    with socket.create_server((PUBLIC_GATEWAY, 0)) as server:
        yield server.getsockname()[1]


@contextmanager
def loop_device(folder: Path) -> Iterator[str]:
    """Somebody else's loop device."""
    (folder / "other.img").write_bytes(bytes(1024**2))
    argv = ("losetup", "--find", "--show", str(folder / "other.img"))
    device = subprocess.check_output(argv, text=True).strip()
    yield device
    subprocess.run(("losetup", "--detach", device), check=True)


def left_on_host() -> dict[str, object]:
    client, mine = docker.from_env(), {"label": f"microcluster.emulator={ACCOUNT}"}
    loops = subprocess.run(("losetup", "-n", "-O", "BACK-FILE"), capture_output=True, text=True, check=True).stdout
    processes = subprocess.run(("ps", "-eo", "args"), capture_output=True, text=True, check=True).stdout
    return {
        "containers": client.api.containers(all=True, filters=mine),
        "volumes": client.volumes.list(filters=mine),
        "networks": client.networks.list(filters=mine),
        "loops": [line for line in loops.splitlines() if str(STATE) in line],
        "processes": [line for line in processes.splitlines() if str(STATE) in line],
        "files": sorted(STATE.rglob("*")),
    }


def test_a_machine_has_the_ordered_host_key_name_disk_gpus_and_speed(machines, keys):
    machines.boot(spec(keys))
    address = spec(keys).public_address
    assert keys.told(address, "hostname -f") == "gpu-0.test-1f3a9c42.microcluster"
    assert keys.told(spec(keys).private_address, "hostname") == "gpu-0"
    assert keys.told(address, "blockdev --getsize64 /dev/xvdc") == str(2000 * 1024**3)
    assert keys.told(address, "wipefs --no-act /dev/xvdc") == "", "it is empty"
    lines = keys.told(address, "nvidia-smi -L").splitlines()
    assert [line.split(" (")[0] for line in lines] == ["GPU 0: Tesla P100-PCIE-16GB", "GPU 1: Tesla P100-PCIE-16GB"]
    machines.restrict(100, Access(private_mbps=100, public_mbps=10))
    listing = json.loads(keys.told(address, "tc -j qdisc show"))
    rates = {each["dev"]: each["options"]["rate"] * 8 for each in listing if each["kind"] == "tbf"}
    assert rates == {"eth0": 100_000_000, "eth1": 10_000_000}


def test_ingress_lets_only_the_named_port_pass(machines, keys):
    machines.restrict(100, Access(public=(FROM_ANYWHERE, TO_ANYWHERE)))
    machines.boot(spec(keys))
    keys.told(spec(keys).public_address, LISTEN.format(port=8080))
    assert reaches(spec(keys).private_address, 8080)
    assert not reaches(spec(keys).public_address, 8080)


def test_closed_egress_passes_only_answers_and_a_machines_root_cannot_lift_it(machines, keys):
    machines.boot(spec(keys))
    with listening_host() as port:
        assert reach(keys, spec(keys), PUBLIC_GATEWAY, port)
        machines.restrict(100, Access(public=(FROM_ANYWHERE,)))
        for tool in ("iptables-nft", "iptables-legacy"):
            assert keys.ssh(spec(keys).public_address, f"{tool} -F").returncode != 0
        assert not reach(keys, spec(keys), PUBLIC_GATEWAY, port)


def test_members_of_a_group_reach_each_other_and_others_do_not(machines, keys):
    member, other = spec(keys, 1), spec(keys, 2)
    from_member = Rule("ingress", None, None, None, (f"{member.private_address}/32",))
    machines.restrict(100, Access(private=(from_member, TO_ANYWHERE)))
    for each in (spec(keys), member, other):
        machines.boot(each)
    assert reach(keys, member, spec(keys).private_address, 22)
    assert not reach(keys, other, spec(keys).private_address, 22)


def test_machines_behind_different_routers_meet_at_the_account_services_only(machines, keys):
    near, far = spec(keys), spec(keys, 1, router=2)
    machines.boot(near)
    machines.boot(far)
    assert reach(keys, far, "10.113.7.1", REGISTRY_PORT)
    assert not reach(keys, far, near.private_address, 22)
    assert not reach(keys, near, far.private_address, 22)


def test_a_machine_restarted_without_the_emulator_has_its_rules_before_sshd(machines, keys):
    machines.restrict(100, Access(public=(FROM_ANYWHERE,)))
    machines.boot(spec(keys))
    machines.close()
    docker.from_env().containers.get(f"{ACCOUNT}-100").restart(timeout=5)
    with pytest.raises(MachineError):
        wait_until("sshd without rules", lambda: reaches(spec(keys).public_address, 22), timeout_s=2)
    machines.open()
    machines.boot(spec(keys))
    with listening_host() as port:
        assert not reach(keys, spec(keys), PUBLIC_GATEWAY, port)


def test_a_file_system_of_fstab_is_mounted_again_after_power_off(machines, keys):
    machines.boot(spec(keys))
    address = spec(keys).public_address
    keys.told(address, "mkfs.ext4 -q /dev/xvdc && mkdir /data")
    keys.told(address, 'echo "UUID=$(blkid -o value -s UUID /dev/xvdc) /data ext4 noatime,nofail 0 2" >>/etc/fstab')
    keys.told(address, "mount /data && echo kept >/data/file")
    machines.power_off(100)
    assert machines.alive() == set()
    machines.boot(spec(keys))
    assert keys.told(address, "cat /data/file") == "kept"


def test_a_machine_comes_back_with_its_disk_after_the_host_has_rebooted(machines, keys, tmp_path):
    machines.boot(spec(keys))
    keys.told(spec(keys).public_address, "mkfs.ext4 -q /dev/xvdc && mount /dev/xvdc /mnt && echo kept >/mnt/file")
    machines.power_off(100)
    machines.close()
    disk = STATE / "disks/100-xvdc.img"
    [device] = subprocess.check_output(("losetup", "-n", "-O", "NAME", "-j", disk), text=True).split()
    subprocess.run(("losetup", "--detach", device), check=True)
    with loop_device(tmp_path):  # Takes the number that the disk had.
        again = ContainerMachines(ACCOUNT, STATE, SUBNETS, PUBLIC, REGISTRY, REGISTRY_PORT)
        again.open()
        again.boot(spec(keys))
        assert keys.told(spec(keys).public_address, "mount /dev/xvdc /mnt && cat /mnt/file") == "kept"
        again.reset()


def test_a_machine_opens_its_own_disk_and_no_other_device(machines, keys, tmp_path):
    machines.boot(spec(keys))
    address = spec(keys).public_address
    keys.told(address, "head -c 1 /dev/xvdc")
    with loop_device(tmp_path) as other:
        of_this_computer = [os.stat(other).st_rdev, os.stat("/").st_dev]
        devices = [f"b {os.major(each)} {os.minor(each)}" for each in of_this_computer]
        for device in (
            *devices,
            "c 1 1",
            "c 1 11",
            "c 10 229",
            "c 10 237",
        ):  # memory, the kernel's log, fuse, loop-control
            opened = keys.ssh(address, f"rm -f /tmp/device; mknod /tmp/device {device} && head -c 1 /tmp/device")
            assert (opened.returncode, "Operation not permitted" in opened.stderr) == (1, True), device


@pytest.mark.parametrize(
    ("call", "error"), [("open_by_handle_at", 1), ("perf_event_open", 1), ("syslog", 1), ("keyctl", 38)]
)
def test_a_machines_root_is_refused_calls_to_this_computers_kernel(machines, keys, call, error):
    machines.boot(spec(keys))
    numbers = {
        "open_by_handle_at": "304, -1, 0, 0",
        "perf_event_open": "298, 0, 0, -1, -1, 0",
        "syslog": "103, 10, 0, 0",
    }
    program = f"import ctypes; c = ctypes.CDLL(None, use_errno=True); c.syscall({numbers.get(call, '250, 0, -3, 0')})"
    assert keys.told(spec(keys).public_address, f"python3 -c '{program}; print(ctypes.get_errno())'") == str(error)


def test_a_registry_port_in_use_is_reported_with_what_to_do(machines):
    machines.close()
    with socket.create_server(("10.113.7.1", REGISTRY_PORT)), pytest.raises(MachineError) as refused:
        machines.open()
    assert "bind: address already in use" in str(refused.value)
    assert "registry_port" in str(refused.value)


def test_networks_that_serve_another_account_are_named_and_stay(machines):
    second = ContainerMachines(
        f"{ACCOUNT}-2", STATE / "other", {1: "10.113.7.0/26"}, "198.51.100.64/26", REGISTRY, 5001
    )
    with (STATE / LOCK_FILE).open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(MachineError, match=rf"private-1 \(10.113.7.0/26\): {ACCOUNT}-private-1 .*--state {STATE}`"):
            second.open()
    (STATE / LOCK_FILE).unlink()
    second.reset()
    machines.open()


def test_networks_of_a_killed_emulator_without_machines_make_room():
    killed = Networks(
        docker.from_env(), "acct-test-killed", Path("/nowhere"), {1: "10.113.21.0/26"}, "198.51.100.128/27"
    )
    later = Networks(docker.from_env(), "acct-test-later", Path("/nowhere"), {1: "10.113.21.0/27"}, "198.51.100.128/28")
    killed.ensure()
    try:
        later.ensure()
        assert not docker.from_env().networks.list(filters={"name": "acct-test-killed"})
    finally:
        later.remove_all()
        killed.remove_all()


def test_a_machine_trusts_only_its_registry_which_refuses_a_wrong_key(machines, keys):
    assert publish(STATE, "microcluster/base:current", "microcluster/small:1")
    assert not publish(STATE, "microcluster/base:current", "microcluster/small:1")
    machines.boot(spec(keys))
    address, registry = spec(keys).public_address, f"{REGISTRY}:{REGISTRY_PORT}"
    ask = "curl -sS -o /dev/null -w '%{http_code}' " + shlex.quote(f"https://{registry}/v2/")
    assert keys.ssh(address, ask).returncode == 60  # curl's code for an unknown authority
    assert keys.told(address, f"{ask} --cacert /etc/docker/certs.d/*/ca.crt") == "401"
    login = f"docker login --username '$oauthtoken' --password-stdin {registry}"
    wait_until("the machine's Docker", lambda: keys.ssh(address, "docker info").returncode == 0, timeout_s=30)
    assert "401 Unauthorized" in keys.ssh(address, login, stdin="wrong").stderr
    keys.told(address, login, stdin=key_of(STATE))
    keys.told(address, f"docker pull --quiet {registry}/microcluster/small:1")
    # With the limits that NCCL's containers ask for, also where this host itself may not raise them.
    limits = "--shm-size=1g --ulimit memlock=-1 --ulimit stack=67108864"
    nested = f"docker run --rm --runtime=nvidia --net=host {limits} {registry}/microcluster/small:1"
    assert keys.told(address, f"{nested} sh -c 'hostname; ulimit -s; df --output=size /dev/shm | tail -1'").split() == [
        "gpu-0",
        "65536",
        "1048576",
    ]


def test_destroying_a_machine_frees_everything_it_had_and_may_be_repeated(machines, keys):
    machines.boot(spec(keys))
    machines.boot(spec(keys, 1))
    machines.destroy(100)
    machines.destroy(100)
    left = left_on_host()
    assert [each["Labels"]["microcluster.guest"] for each in left["containers"]] == ["101"]
    assert [volume.name for volume in left["volumes"]] == [f"{ACCOUNT}-101-docker"]
    assert [Path(line).name for line in left["loops"]] == ["101-xvdc.img"]
    assert not [path for path in left["files"] if "100" in path.name]


def test_reset_leaves_nothing_on_the_host(machines, keys):
    machines.boot(spec(keys))
    machines.power_off(100)
    machines.boot(spec(keys, 1))
    machines.reset()
    assert left_on_host() == dict.fromkeys(left_on_host(), [])


def test_a_firewall_between_machines_and_this_host_is_found_before_an_order(machines):
    with socket.create_server(("10.113.7.1", 0)) as api:
        port = api.getsockname()[1]
        machines.require_way_to(port)
        rule = ("INPUT", "-s", SUBNETS[1], "-p", "tcp", "--dport", str(port), "-j", "DROP")
        subprocess.run(("iptables", "-I", *rule), check=True)
        try:
            with pytest.raises(MachineError, match=f"10.113.7.1, port {port}: no answer.*-s 10.113.7.0/26 .*ACCEPT"):
                machines.require_way_to(port)
        finally:
            subprocess.run(("iptables", "-D", *rule), check=True)
