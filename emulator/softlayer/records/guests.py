"""A guest with everything that belongs to it, as it is kept on disk."""

from dataclasses import dataclass, field


@dataclass
class Transaction:
    """Pending work on a guest; the clock determines its current step."""

    id: int
    group: str
    started: float
    duration_s: float
    ended: float | None = None
    stalls_s: float = 0.0  # how long it stays in one step, half-way, beyond its time


@dataclass
class LaterWork:
    """A transaction that begins at a later moment; until then it is not shown."""

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

    @property
    def is_begun(self) -> bool:
        """Whether its building has begun: its order may wait for approval, or never be carried out."""
        return any((self.provisioned, self.transaction, self.last_transaction))

    @property
    def name(self) -> str:
        """The fully qualified name."""
        return f"{self.hostname}.{self.domain}"
