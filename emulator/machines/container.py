"""The containers that are an account's machines: their rights, create, start, stop, remove."""

import errno
import json
import threading
from collections.abc import Iterable
from pathlib import Path

import docker
from docker.errors import APIError, NotFound
from docker.models.containers import Container
from docker.types import EndpointConfig, LogConfig, Ulimit

from emulator.machines.host_tools import docker_doing, wait_until
from emulator.machines.machine_mount import DISKS
from emulator.machines.network_access import PRIVATE, PUBLIC, Attachment
from emulator.machines.networks import ACCOUNT_LABEL, Networks
from emulator.machines.spec import MachineError, MachineSpec

GUEST_LABEL = "microcluster.guest"
MACHINE_MOUNT = "/var/lib/machine"
DOCKER_MOUNT, SHARE_MOUNT = "/var/lib/docker", "/srv/share"
STOP_S = 5  # Then it is killed, which its file systems survive.
REMOVAL_S = 60
IFNAME = "com.docker.network.endpoint.ifname"  # Honoured by Docker 28; older daemons go by the networks' names.
# Beyond Docker's own: mounts and a nested Docker daemon; its networks; a look into the processes of a machine's other users.
CAPABILITIES = ("SYS_ADMIN", "NET_ADMIN", "SYS_PTRACE")
DRIVE_CAPABILITY, FUSE = "DAC_READ_SEARCH", "c 10:229 rwm"  # mount.cifs and rclone mount do not start without
# What a machine's root could do to this computer, and neither Docker nor a mount needs.
REFUSED_CALLS = (
    *(
        "acct",
        "delete_module",
        "finit_module",
        "init_module",
        "ioperm",
        "iopl",
        "kexec_file_load",
        "kexec_load",
        "reboot",
    ),
    *("clock_settime", "fanotify_init", "io_uring_setup", "lookup_dcookie", "nfsservctl", "open_by_handle_at"),
    *(
        "perf_event_open",
        "quotactl",
        "quotactl_fd",
        "settimeofday",
        "swapoff",
        "swapon",
        "syslog",
        "uselib",
        "userfaultfd",
    ),
    *("vm86", "vm86old"),
)
KEYRING_CALLS = (
    "add_key",
    "keyctl",
    "request_key",
)  # No machine has keyrings of its own; runc goes without where they are missing.
CGROUPS_2 = Path("/sys/fs/cgroup/cgroup.controllers")
AF_NETLINK, NETLINK_NETFILTER, SOL_IP, IPT_SO_SET_REPLACE = 16, 12, 0, 64  # linux/{socket,netlink,in,ip_tables}.h
CAP_SYS_RESOURCE = 24  # linux/capability.h


class Containers:
    """The containers of one account."""

    def __init__(
        self, client: docker.DockerClient, account: str, networks: Networks, extra_hosts: dict[str, str]
    ) -> None:
        self._client, self._account, self._networks, self._extra_hosts = client, account, networks, extra_hosts
        self._attaching = threading.Lock()
        # Docker 20.10, which Debian 12 has, can lock up for good when one container leaves a network while another
        # one joins or leaves it (moby/moby issue 46661).

    @property
    def label(self) -> str:
        return f"{ACCOUNT_LABEL}={self._account}"

    def require_images(self, images: Iterable[str]) -> None:
        """Refuse to begin without the images of the machines."""
        for image in images:
            with docker_doing("Looking for the machine image"):
                self._client.images.get(image)

    def start(self, spec: MachineSpec, given: Path) -> None:
        """Create the container with its folder of given files unless it is there, and start it unless it runs."""
        with docker_doing(f"Starting machine {spec.guest_id} ({spec.hostname})"), self._attaching:
            container = self._find(spec.guest_id) or self._create(spec, given)
            self._connect_publicly(container, spec)
            container.start()

    def attachment(self, guest_id: int) -> Attachment | None:
        """The machine's network attachment; None while the machine does not run."""
        with docker_doing(f"Reading machine {guest_id}"):
            container = self._find(guest_id)
        if container is None or not container.attrs["State"]["Pid"]:
            return None
        addresses = {
            name: endpoint["IPAddress"] for name, endpoint in container.attrs["NetworkSettings"]["Networks"].items()
        }
        public = addresses.pop(self._networks.public_name, None)
        [(private_network, private)] = addresses.items()
        return Attachment(
            guest_id=guest_id,
            pid=container.attrs["State"]["Pid"],
            private_address=private,
            public_address=public,
            private_gateway=self._networks.gateway_of(private_network),
            services=self._networks.services,
        )

    def run_inside(self, guest_id: int, argv: tuple[str, ...]) -> None:
        """Run a command on the machine."""
        with docker_doing(f"Running `{' '.join(argv)}` on machine {guest_id}"):
            code, output = self._client.containers.get(self._name(guest_id)).exec_run(argv)
        if code != 0:
            raise MachineError(f"Running `{' '.join(argv)}` on machine {guest_id}: exit code {code}: {output.decode()}")

    def last_log_lines(self, guest_id: int) -> str:
        """The last lines of the log of the machine's init."""
        with docker_doing(f"Reading the log of machine {guest_id}"):
            text = self._client.containers.get(self._name(guest_id)).logs(tail=5).decode(errors="replace")
        return " / ".join(text.split("\n")).strip()

    def stop(self, guest_id: int) -> None:
        """Stop the container."""
        with docker_doing(f"Stopping machine {guest_id}"), self._attaching:
            if container := self._find(guest_id):
                container.stop(timeout=STOP_S)

    def remove(self, guest_id: int) -> None:
        """Remove the container and its volume."""
        with docker_doing(f"Removing machine {guest_id}"):
            with self._attaching:
                if container := self._find(guest_id):
                    _remove(container)
                    wait_until(f"the removal of machine {guest_id}", lambda: self._find(guest_id) is None, REMOVAL_S)
            try:
                self._client.volumes.get(self._volume(guest_id)).remove()
            except NotFound:
                return

    def remove_volumes(self) -> None:
        """Remove what volumes are left of the account."""
        with docker_doing(f"Removing the volumes of {self._account}"):
            for volume in self._client.volumes.list(filters={"label": self.label}):
                volume.remove()

    def guests(self, *, running: bool) -> set[int]:
        """The guests that have a container, or only those whose container runs."""
        filters = {"label": self.label} | ({"status": "running"} if running else {})
        with docker_doing(f"Listing the machines of {self._account}"):
            found = self._client.api.containers(all=True, filters=filters)
        return {int(each["Labels"][GUEST_LABEL]) for each in found}

    def _connect_publicly(self, container: Container, spec: MachineSpec) -> None:
        """Give the container the machine's public address, in place of another one that it had."""
        name = self._networks.public_name
        endpoint = container.attrs["NetworkSettings"]["Networks"].get(name)
        if endpoint and (endpoint.get("IPAMConfig") or {}).get("IPv4Address") != spec.public_address:
            self._client.networks.get(name).disconnect(container)
            endpoint = None
        if spec.public_address and not endpoint:
            wanted = {"ipv4_address": spec.public_address, "driver_opt": {IFNAME: PUBLIC}}
            self._client.networks.get(name).connect(container, **wanted)

    def _find(self, guest_id: int) -> Container | None:
        try:
            return self._client.containers.get(self._name(guest_id))
        except NotFound:
            return None

    def _name(self, guest_id: int) -> str:
        return f"{self._account}-{guest_id}"

    def _volume(self, guest_id: int) -> str:
        return f"{self._name(guest_id)}-docker"

    def _shared_home(self, spec: MachineSpec) -> dict[str, dict[str, str]]:
        """The volume that is the home on several machines; it goes with the account's other volumes."""
        if not spec.shares_home:
            return {}
        name = f"{self._account}-home"
        self._client.volumes.create(name, labels={ACCOUNT_LABEL: self._account})
        return {name: {"bind": "/home", "mode": "rw"}}

    def _create(self, spec: MachineSpec, given: Path) -> Container:
        network = self._networks.private_name(spec.router_id)
        labels = {ACCOUNT_LABEL: self._account, GUEST_LABEL: str(spec.guest_id)}
        self._client.volumes.create(self._volume(spec.guest_id), labels=labels)
        endpoint = EndpointConfig(
            self._client.api._version, ipv4_address=spec.private_address, driver_opt={IFNAME: PRIVATE}
        )
        return self._client.containers.create(
            spec.image,
            name=self._name(spec.guest_id),
            hostname=spec.hostname,
            domainname=spec.domain,
            labels=labels,
            network=network,
            networking_config={network: endpoint},
            extra_hosts=self._extra_hosts,
            volumes={
                str(given): {"bind": MACHINE_MOUNT, "mode": "ro"},
                # A Docker daemon cannot store its layers on the layers of another one.
                self._volume(spec.guest_id): {"bind": SHARE_MOUNT if spec.share else DOCKER_MOUNT, "mode": "rw"},
                **self._shared_home(spec),
            },
            **isolation(spec, (given / DISKS).read_text(), raises_limits=may_raise_limits()),
        )


def _remove(container: Container) -> None:
    try:
        container.remove(force=True, v=True)
    except NotFound:
        return
    except APIError as refused:
        if refused.status_code != 409:  # Somebody else is removing it already.
            raise


def isolation(spec: MachineSpec, disk_lines: str, *, raises_limits: bool) -> dict[str, object]:
    """The options of a machine; cores and memory are not limited.

    Args:
        disk_lines: its disks, as its init reads them.
        raises_limits: whether this host may give more locked memory than it has itself, as NCCL's containers ask for.
    """
    # A file server and a site's machines mount nothing; no machine behind security groups has drives of the network.
    mounts = not (spec.share or spec.shares_home)
    drives = mounts and spec.filters_packets
    own = [f"b {major}:{minor} rwm" for _, major, minor in map(str.split, disk_lines.splitlines())]
    rights = {
        "cap_add": [*CAPABILITIES, *([DRIVE_CAPABILITY] if drives else [])],
        "security_opt": [f"seccomp={json.dumps(_system_calls(spec.filters_packets))}", "apparmor=unconfined"],
        "device_cgroup_rules": [*own, *([FUSE] if drives else [])],
    }
    return {
        **(rights if mounts else {}),
        "ulimits": [Ulimit(name="memlock", soft=-1, hard=-1)] if raises_limits else [],
        "cgroupns": "private",
        "shm_size": "1g",
        "tmpfs": {"/run": "mode=755"},
        "dns": ["127.0.0.1"],  # Nothing answers there, so that no name is looked up outside.
        "log_config": LogConfig(type="json-file", config={"max-size": "1m", "max-file": "1"}),
    }


def may_raise_limits(status: str = "/proc/self/status") -> bool:
    """Whether this host's root may raise limits; in some sandboxes it may not."""
    lines = dict(line.partition(":")[::2] for line in Path(status).read_text().splitlines())
    return bool(int(lines["CapEff"], 16) >> CAP_SYS_RESOURCE & 1)


def _system_calls(filters_packets: bool) -> dict[str, object]:
    """Without ``filters_packets`` block both ways to the kernel's packet filter: nftables' netlink family and the older option.

    A Docker daemon needs NET_ADMIN for containers on the machine's own network; with it alone the machine's root could
    lift its security groups.
    """
    # By bpf a Docker daemon gives its containers their devices, where control groups are of version 2.
    calls = REFUSED_CALLS if CGROUPS_2.exists() else (*REFUSED_CALLS, "bpf")
    refused = [
        {"names": list(calls), "action": "SCMP_ACT_ERRNO"},
        {"names": list(KEYRING_CALLS), "action": "SCMP_ACT_ERRNO", "errnoRet": errno.ENOSYS},
    ]
    packets = [
        _refuse("socket", {0: AF_NETLINK, 2: NETLINK_NETFILTER}),
        _refuse("setsockopt", {1: SOL_IP, 2: IPT_SO_SET_REPLACE}),
    ]
    return {"defaultAction": "SCMP_ACT_ALLOW", "syscalls": refused if filters_packets else refused + packets}


def _refuse(call: str, arguments: dict[int, int]) -> dict[str, object]:
    equal = [{"index": index, "value": value, "op": "SCMP_CMP_EQ"} for index, value in arguments.items()]
    return {"names": [call], "action": "SCMP_ACT_ERRNO", "args": equal}
