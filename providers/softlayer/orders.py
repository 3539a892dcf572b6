"""An order: as it is sent, and as the account shows it: waiting for a person, approved, or refused."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from core.home import Owner, owner_in_domain
from providers.rental.account import OrderStatus
from providers.rental.errors import OrderWithoutId
from providers.softlayer.api import LONGEST_ORDER_S, Api, made_id

Row = Mapping[str, Any]

STATUS_MASK = "mask[id,status]"
ORDER_MASK = "mask[id,status,createDate,items[hostName,domainName]]"
BILL_MASK = "mask[id,domainName,hostName,cancellationDate,orderItem[order[id]]]"
REFUSED = frozenset({"CANCELLED", "CANCELED", "REFUSED", "DENIED", "REJECTED"})
"""What ends an order without a machine.

The vendor lists its statuses only to an account (SoftLayer_Billing_Order::getOrderStatuses). Known are PENDING_APPROVAL,
PENDING_AUTO_APPROVAL, APPROVED, and COMPLETED, which the official client's answers for SoftLayer_Billing_Order have
(softlayer-python, SoftLayer/fixtures). Any status that is not listed here stands: the machine may be there and billed.
"""
CLOCKS_DIFFER_BY = timedelta(hours=1)
"""An order that the account dates so long before it was sent may be the one: its clock is not this computer's."""


@dataclass(frozen=True)
class Order:
    """A call that orders something."""

    service: str
    method: str
    content: dict[str, Any]


def send(api: Api, order: Order) -> str:
    """Send an order, once, and return the id of what it makes.

    Raises:
        OrderWithoutId: it was accepted, and the receipt names only the order.
    """
    call = f"{order.service}::{order.method}"
    answer = api.once(order.service, order.method, order.content, limit_s=LONGEST_ORDER_S)
    if order.method == "placeOrder" and isinstance(answer, dict):
        guests = (answer.get("orderDetails") or {}).get("virtualGuests") or [{}]
        if not guests[0].get("id") and answer.get("orderId"):
            raise OrderWithoutId(f"calling {call}", str(answer["orderId"]))
        answer = guests[0]
    return made_id(answer, call)


def as_status(order: Row, shown: Collection[str] = ()) -> OrderStatus:
    """Read an order as the kernel sees it.

    Args:
        shown: the host names of the guests that the account shows.
    """
    status = _status(order)
    # The parts of an order may bear no name of their own.
    names = tuple(str(item["hostName"]) for item in order.get("items") or [] if item.get("hostName"))
    return OrderStatus(
        str(order["id"]),
        f"its order {order['id']} {f'is {status}' if status else 'cannot be read'}",
        # PENDING_APPROVAL, PENDING_AUTO_APPROVAL and the like.
        is_waiting="PENDING" in status,
        is_refused=is_refused(order),
        hostnames=names,
        is_shown=set(names) <= set(shown),
    )


def of_guest(guest: Row) -> OrderStatus | None:
    """Read the order that a guest's billing item names."""
    named = order_of(guest.get("billingItem") or {})
    return as_status(named) if named else None


def is_refused(order: Row) -> bool:
    """Tell whether it was certainly refused or withdrawn."""
    return _status(order) in REFUSED


def is_over(order: Row, items: Sequence[Row]) -> bool:
    """Tell whether all that an order made was cancelled: its billing items are listed, and each has its end."""
    its = [each for each in items if str(order_of(each).get("id")) == str(order["id"])]
    return bool(its) and all(each.get("cancellationDate") for each in its)


def may_be_of(order: Row, hostname: str, since: datetime) -> bool:
    """Tell whether something of this host name is in the order, and whether it was placed since then."""
    placed = datetime.fromisoformat(str(order["createDate"])) if order.get("createDate") else since
    is_named = any(item.get("hostName") == hostname for item in order.get("items") or [])
    return is_named and placed >= since - CLOCKS_DIFFER_BY


def open_without_guest(items: Sequence[Row], listed: Sequence[Row]) -> list[str]:
    """Return the open billing items that no listed guest names as its own.

    SoftLayer_Billing_Item names no guest (only its subtype for guests has ``resourceTableId``), but a guest names its item.
    """
    claimed = {str((guest.get("billingItem") or {}).get("id")) for guest in listed}
    return [str(each["id"]) for each in items if not each.get("cancellationDate") and str(each["id"]) not in claimed]


def is_of(order: Row, owner: Owner) -> bool:
    """Tell whether an order has something of this stack."""
    return any(is_under(item, owner) for item in order.get("items") or [])


def is_under(item: Row, owner: Owner) -> bool:
    """Tell whether a billing item is of this stack."""
    return owner_in_domain(item.get("domainName")) == owner


def order_of(item: Row) -> Row:
    """Return the order that a billing item came from, as far as it names one."""
    return (item.get("orderItem") or {}).get("order") or {}


def _status(order: Row) -> str:
    return str(order.get("status") or "").upper()
