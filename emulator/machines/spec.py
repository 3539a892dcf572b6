"""What the emulated account asks of its machines, in plain values."""

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
    """What may pass on a machine's interfaces; without rules an interface is open, with none it is closed; speed 0 is no limit."""

    private: tuple[Rule, ...] | None = None
    public: tuple[Rule, ...] | None = None
    private_mbps: int = 0
    public_mbps: int = 0


@dataclass(frozen=True)
class Share:
    """What a file server serves, and to whom."""

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
    """Of each GPU, where the model's is not known."""
    startup_script: str = ""
    """What root runs at the next boot, on images that run one."""
    filters_packets: bool = False
    """Whether its root may set rules for packets; where security groups guard the machine, they are the only ones."""
    share: Share | None = None
    """With it the machine is a file server; nobody logs in."""
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
