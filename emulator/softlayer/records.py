"""The records of a SoftLayer account, by kind and id, as they are kept on disk."""

from dataclasses import dataclass, field

from emulator.machines.spec import Disk
from emulator.shared.store import Store, Table


@dataclass
class Fee:
    """One billed part of a billing item."""

    id: int
    category: str
    description: str
    hourly: str  # dollars per hour, a decimal


@dataclass
class BillingItem:
    """A top-level billing item: a rented resource with a fee for each part; never deleted."""

    id: int
    order_id: int
    resource_id: int
    hourly: bool
    opened: float
    fees: list[Fee]
    hostname: str = ""
    domain: str = ""
    flavor: str = ""
    closed: float | None = None
    notes: str = ""
    category: str = "guest_core"  # of the part that names the whole; the other parts are its children
    ends: float | None = None  # cancelled, but paid and usable until then


@dataclass
class Order:
    """A placed order and what it made."""

    id: int
    created: float
    lines: list[tuple[str, str]]  # hostname and domain for which each price was ordered
    username: str = ""
    guest_ids: list[int] = field(default_factory=list)
    status: str = "APPROVED"
    held: list[BillingItem] = field(default_factory=list)  # billed from the approval on


@dataclass
class Transaction:
    """Pending work on a guest; the clock determines its current step, and whether it has started: until then it is not shown."""

    id: int
    group: str
    started: float
    duration_s: float


@dataclass
class Component:
    """One network interface of a guest: port 0 is private (eth0), port 1 public (eth1)."""

    id: int
    port: int
    address: str
    vlan_id: int
    max_speed: int
    groups: list[int] = field(default_factory=list)


@dataclass
class Guest:
    """One virtual guest from its order to the end of its reclaim."""

    id: int
    hostname: str
    domain: str
    datacenter: str
    flavor: str
    created: float
    order_id: int
    billing_item_id: int
    components: list[Component]
    disks: list[Disk]  # the boot disk as well; swap and metadata are shown, not kept
    hourly: bool = True
    image_id: int | None = None
    system_id: int | None = None  # the price of the operating system
    ssh_keys: list[str] = field(default_factory=list)
    user_data: str = ""
    notes: str = ""
    tags: list[str] = field(default_factory=list)
    password: str = ""
    provisioned: float | None = None
    cancelled: float | None = None
    transaction: Transaction | None = None
    last_transaction: Transaction | None = None
    begun: bool = True  # not while its order waits for approval
    # The machine behind the guest: it has to be started ``boots_wanted`` times and has been ``boots_done`` times.
    boots_wanted: int = 1
    boots_done: int = 0
    machine_gone: bool = False
    machine_error: str | None = None

    @property
    def private(self) -> Component:
        """The interface on the private network."""
        return self.components[0]

    @property
    def public(self) -> Component:
        """The interface on the public network."""
        return self.components[1]

    @property
    def name(self) -> str:
        """The fully qualified name."""
        return f"{self.hostname}.{self.domain}"

    def active(self, now: float) -> Transaction | None:
        """The transaction that has started."""
        return self.transaction if self.transaction and self.transaction.started <= now else None


@dataclass
class SshKey:
    """A public key of the account."""

    id: int
    label: str
    key: str
    fingerprint: str
    notes: str
    created: float


@dataclass
class GroupRule:
    """One rule of a security group; its remote is a network, another group, or anything."""

    id: int
    direction: str
    ethertype: str = "IPv4"
    protocol: str | None = None
    port_min: int | None = None
    port_max: int | None = None
    remote_ip: str | None = None
    remote_group_id: int | None = None
    created: float | None = None


@dataclass
class SecurityGroup:
    """A security group with its rules."""

    id: int
    name: str
    description: str
    created: float
    rules: list[GroupRule] = field(default_factory=list)


@dataclass
class Vlan:
    """A VLAN with one subnet; an automatic one exists while guests are behind its router."""

    id: int
    router_id: int
    private: bool
    cidr: str
    network: int  # which of the settings' private subnets; 0 for the public one
    name: str = ""
    billing_item_id: int | None = None  # only of an ordered VLAN, which stays until it is cancelled


class Records(Store):
    """Store of all records of a SoftLayer account."""

    KINDS = {
        "guests": Guest,
        "billing_items": BillingItem,
        "orders": Order,
        "ssh_keys": SshKey,
        "security_groups": SecurityGroup,
        "vlans": Vlan,
    }

    guests: Table[Guest]
    billing_items: Table[BillingItem]
    orders: Table[Order]
    ssh_keys: Table[SshKey]
    security_groups: Table[SecurityGroup]
    vlans: Table[Vlan]
