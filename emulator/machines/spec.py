"""Machine specifications: the plain values with which an emulated account asks for a machine."""

from dataclasses import dataclass
from typing import Protocol

MACHINE_IMAGE = "microcluster/machine:current"
SSH_PORT, SMB_PORT = 22, 445


class MachineError(Exception):
    """A machine operation failed; the message is a full sentence."""


@dataclass(frozen=True)
class Disk:
    """One SAN disk; SoftLayer's device 2 is ``/dev/xvdc``, 3 is ``/dev/xvdd``, and so on."""

    device: int
    capacity_gb: int


@dataclass(frozen=True)
class Rule:
    """One rule of a security group with its remote already resolved to address ranges; none means any."""

    direction: str
    protocol: str | None
    port_min: int | None
    port_max: int | None
    remote: tuple[str, ...]


@dataclass(frozen=True)
class Access:
    """Packet rules and speeds of a machine's interfaces. None: open; no rules: closed; speed 0: no limit."""

    private: tuple[Rule, ...] | None = None
    public: tuple[Rule, ...] | None = None
    private_mbps: int = 0
    public_mbps: int = 0


@dataclass(frozen=True)
class Share:
    """A file server's share, and the login that may mount it."""

    name: str
    username: str
    password: str


@dataclass(frozen=True)
class MachineSpec:
    """The machine behind one guest, or behind one shared drive."""

    guest_id: int
    hostname: str
    domain: str
    router_id: int
    private_address: str
    public_address: str | None = None
    gpu_model: str | None = None
    gpu_count: int = 0
    disks: tuple[Disk, ...] = ()
    ssh_keys: tuple[str, ...] = ()
    user_data: str = ""
    root_password: str = ""
    """Root's password, as on every guest; without one root cannot log in with a password."""
    image: str = MACHINE_IMAGE
    gpu_memory_mib: int = 0
    """Memory of each GPU; needed only for a model that emulated_gpus.py does not know."""
    startup_script: str = ""
    """A script that root runs at the next boot, on images that run one."""
    filters_packets: bool = False
    """Whether its root may set rules for packets; where security groups guard the machine, they are the only ones."""
    share: Share | None = None
    """The share that this machine serves, as a file server without logins; None for a machine with SSH."""
    shares_home: bool = False
    """Whether its /home is one with that of the account's other machines."""

    @property
    def service_port(self) -> int:
        """The port that is open once the machine is up."""
        return SMB_PORT if self.share else SSH_PORT


class Machines(Protocol):
    """The machines of one account; the methods here do nothing."""

    def open(self) -> None:
        """Make networks and registry exist and run; may be repeated, also after the host has rebooted."""

    def boot(self, spec: MachineSpec) -> None:
        """Create or start the machine and return once its service listens; may be repeated."""

    def power_off(self, guest_id: int) -> None:
        """Stop the machine and keep its disks."""

    def destroy(self, guest_id: int) -> None:
        """Remove the machine with its disks; one that is gone already is no error."""

    def restrict(self, guest_id: int, access: Access) -> None:
        """Let only so much pass from now on; also before the first boot."""

    def alive(self) -> set[int]:
        """Return the guests whose machine runs."""
        return set()

    def close(self) -> None:
        """Stop the processes beside the machines, and leave the machines."""

    def reset(self) -> None:
        """Remove everything that this account has on the host."""


class NoMachines(Machines):
    """Guests without machines: every order succeeds and nothing runs."""
