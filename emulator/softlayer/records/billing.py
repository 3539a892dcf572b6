"""Orders and what is billed for them, as they are kept on disk."""

from dataclasses import dataclass, field


@dataclass
class Fee:
    """One billed part of a billing item, for as long as it is open."""

    id: int
    category: str
    description: str
    hourly: str  # dollars per hour, a decimal
    opened: float
    closed: float | None = None


@dataclass
class BillingItem:
    """A top-level billing item: a rented resource with a fee for each part; never deleted."""

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
    category: str = "guest_core"  # of the part that names the whole; the other parts are its children
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
    approved: float | None = None  # when a person approved it; None when no approval was needed
    held: list[BillingItem] = field(default_factory=list)  # billed from the approval on
