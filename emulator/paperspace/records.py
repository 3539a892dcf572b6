"""The records of a Paperspace account, by kind and id. ``ref`` is the id that the API shows."""

from dataclasses import dataclass, field

from emulator.shared.store import Store, Table


@dataclass
class Phase:
    """One stretch of work on a machine: the state that it shows, and the event that it belongs to."""

    state: str
    seconds: float
    event_id: int
    waits: bool = False  # until the machine behind it is where the account wants it


class Listed:
    """A record that the API lists and shows by its id, unless it is hidden."""

    is_hidden = False


@dataclass
class Machine(Listed):
    """One machine, from the accepted creation to the end of its deletion."""

    id: int
    ref: str
    name: str
    machine_type: str
    template_id: str
    region: str
    disk_gb: int
    network_id: int
    private_ip: str
    public_ip_type: str
    created: float
    modified: float
    state: str = "provisioning"
    phases: list[Phase] = field(default_factory=list)
    since: float = 0.0  # when the first phase began
    settles: str = "off"  # the state after the last phase; empty: the machine is gone
    public_ip: str | None = None
    powered: bool = False
    boots: int = 0
    revision: int = 1  # of what the machine behind it has to be
    reached: int = 0
    deleting: bool = False
    failed: bool = False  # its creation has ended with an error
    startup_script: str = ""  # the text that the last boot has got, or the next one gets
    error: str | None = None  # why the machine behind it does not come up


@dataclass
class Network(Listed):
    """A private network."""

    id: int
    ref: str
    name: str
    region: str
    subnet: str
    position: int  # of the subnet in the settings
    created: float


@dataclass
class Drive(Listed):
    """A shared drive: a share on a server of its own in a private network."""

    id: int
    ref: str
    name: str
    region: str
    network_id: int
    size_gb: int
    address: str
    username: str
    password: str
    created: float
    is_hidden: bool = False  # deleted, while its server goes
    error: str | None = None


@dataclass
class Script(Listed):
    """A startup script; its text is never shown."""

    id: int
    ref: str
    name: str
    text: str
    is_run_once: bool
    created: float
    machine_ids: list[int] = field(default_factory=list)
    served_ids: list[int] = field(default_factory=list)  # machines that have had it, if it runs once


@dataclass
class PublicIp(Listed):
    """An address that stays until it is released; it is its own id."""

    id: int
    ref: str
    region: str
    created: float
    machine_id: int | None = None


@dataclass
class Event:
    """An operation on a machine, such as a start, and its progress."""

    id: int
    ref: str
    name: str
    machine_ref: str
    created: float
    state: str = "new"
    started: float | None = None
    finished: float | None = None


@dataclass
class BillingItem:
    """A charge from a moment on; ``per_month`` is its limit in a calendar month."""

    id: int
    kind: str
    resource_id: int
    ref: str
    name: str
    per_hour: str
    per_month: str | None
    opened: float
    closed: float | None = None


class Records(Store):
    """Store of all records of a Paperspace account."""

    RESET = "python -m emulator reset paperspace"
    KINDS = {
        "machines": Machine,
        "networks": Network,
        "drives": Drive,
        "scripts": Script,
        "public_ips": PublicIp,
        "events": Event,
        "billing_items": BillingItem,
    }

    machines: Table[Machine]
    networks: Table[Network]
    drives: Table[Drive]
    scripts: Table[Script]
    public_ips: Table[PublicIp]
    events: Table[Event]
    billing_items: Table[BillingItem]
