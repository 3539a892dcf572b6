"""The things an account holds, as they are kept on disk."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Transaction:
    """Pending work on a guest; its present step follows from the clock."""

    id: int
    group: str
    started: float
    duration_s: float
    ended: float | None = None
    stalls_s: float = 0.0  # how long it stays in one step, half-way, beyond its time


@dataclass
class LaterWork:
    """A transaction that begins by itself at a moment; until then nothing of it is to be seen."""

    group: str
    starts: float
    duration_s: float


@dataclass
class Component:
    """One network interface of a guest: port 0 is private (eth0), port 1 public (eth1)."""

    id: int
    port: int
    mac: str
    address: str
    vlan_id: int
    max_speed: int
    groups: list[int] = field(default_factory=list)


@dataclass
class GuestDisk:
    """One disk of a guest under its device number; swap and metadata are shown, not kept."""

    id: int
    block_device_id: int
    device: int
    capacity_gb: int


@dataclass
class Upgrade:
    """An ordered change of a guest that starts a little later and restarts it."""

    id: int
    order_id: int
    ordered: float
    starts: float
    disks: dict[int, int] = field(default_factory=dict)  # device number to capacity in GB
    port_speed: int | None = None
    preset_id: int | None = None
    never: bool = False  # accepted, and then nobody does it


@dataclass
class Guest:
    """One virtual guest from its order to the end of its reclaim."""

    id: int
    uuid: str
    hostname: str
    domain: str
    datacenter: str
    flavor: str
    created: float
    order_id: int
    billing_item_id: int
    components: list[Component]
    disks: list[GuestDisk]
    hourly: bool = True
    system: str | None = None
    image_id: int | None = None
    ssh_key_ids: list[int] = field(default_factory=list)
    ssh_keys: list[str] = field(default_factory=list)
    user_data: str = ""
    post_install_uri: str = ""
    notes: str = ""
    tags: list[str] = field(default_factory=list)
    password: str = ""
    powered: bool = True
    provisioned: float | None = None
    modified: float | None = None
    cancelled: float | None = None
    transaction: Transaction | None = None
    last_transaction: Transaction | None = None
    reload_transaction_id: int | None = None
    upgrade: Upgrade | None = None  # the open one
    finished_upgrades: list[Upgrade] = field(default_factory=list)
    later: LaterWork | None = None
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
    def public(self) -> Component | None:
        """The interface on the public network, unless the guest is private only."""
        return self.components[1] if len(self.components) > 1 else None

    def finish_upgrade(self) -> None:
        """Close the open upgrade request; it stays listed."""
        self.finished_upgrades += [self.upgrade] if self.upgrade else []
        self.upgrade = None

    @property
    def is_begun(self) -> bool:
        """Whether anybody has begun to build it: its order may wait for a person, or have been forgotten."""
        return any((self.provisioned, self.transaction, self.last_transaction))

    @property
    def name(self) -> str:
        """The fully qualified name."""
        return f"{self.hostname}.{self.domain}"


@dataclass
class Fee:
    """One billed part of a billing item, for as long as it is open."""

    id: int
    category: str
    description: str
    hourly: str  # dollars per hour, a decimal
    opened: float
    closed: float | None = None
    replaced: str = "0"  # dollars per month of the part that this one replaced


@dataclass
class BillingItem:
    """A top-level billing item: whatever is rented, with one fee per part. It stays readable after its end."""

    id: int
    order_id: int
    order_item_id: int
    resource_id: int
    hostname: str
    domain: str
    datacenter: str
    flavor: str
    hourly: bool
    opened: float
    fees: list[Fee]
    closed: float | None = None
    notes: str = ""
    kind: str = "guest"  # what the resource is
    category: str = "guest_core"  # the part of this category gives the whole its name; the others are its children
    ends: float | None = None  # cancelled, but paid and usable until then


@dataclass
class OrderLine:
    """One price of an order, and the guest it was ordered for."""

    description: str
    category: str
    hostname: str = ""
    domain: str = ""


@dataclass
class Order:
    """A placed order and what it made."""

    id: int
    created: float
    total: str  # dollars per hour or per month, a decimal
    hourly: bool
    lines: list[OrderLine]
    guest_ids: list[int]
    kind: str = "new"
    status: str = "APPROVED"
    approved: float | None = None  # when a person approved it; None where nobody had to
    held: list[BillingItem] = field(default_factory=list)  # what is billed once it is approved
    held_upgrade: Upgrade | None = None  # what is done once it is approved


@dataclass
class SshKey:
    """A public key of the account."""

    id: int
    label: str
    key: str
    fingerprint: str
    notes: str
    created: float
    modified: float | None = None


@dataclass
class GroupRule:
    """One rule of a security group; it names addresses, another group, or nobody in particular."""

    id: int
    direction: str
    ethertype: str = "IPv4"
    protocol: str | None = None
    port_min: int | None = None
    port_max: int | None = None
    remote_ip: str | None = None
    remote_group_id: int | None = None
    created: float = 0.0
    modified: float | None = None


@dataclass
class SecurityGroup:
    """A security group with its rules."""

    id: int
    name: str
    description: str
    created: float
    modified: float | None = None
    rules: list[GroupRule] = field(default_factory=list)


@dataclass
class Vlan:
    """A VLAN with its one subnet: an automatic one comes with the first guest behind a router and goes with the last."""

    id: int
    number: int
    router_id: int
    private: bool
    subnet_id: int
    cidr: str
    network: int  # which of the settings' private subnets; 0 for the public one
    name: str = ""
    tags: list[str] = field(default_factory=list)
    billing_item_id: int | None = None  # only of an ordered VLAN, which stays until it is cancelled


@dataclass
class Volume:
    """A block volume."""

    id: int
    billing_item_id: int
    username: str
    datacenter: str
    capacity_gb: int
    created: float
    notes: str = ""


KINDS: dict[str, type] = {
    "guests": Guest,
    "billing_items": BillingItem,
    "orders": Order,
    "ssh_keys": SshKey,
    "security_groups": SecurityGroup,
    "vlans": Vlan,
    "volumes": Volume,
}
