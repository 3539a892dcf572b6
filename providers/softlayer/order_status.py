"""An order as the account shows it: waiting for a person, approved, or refused."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from providers.rental.backend import OrderStatus

Order = Mapping[str, Any]
MASK = "mask[id,status]"
REFUSED = frozenset({"CANCELLED", "CANCELED", "REFUSED", "DENIED", "REJECTED"})
"""What ends an order without a machine.

The vendor lists its statuses only to an account (SoftLayer_Billing_Order::getOrderStatuses). Known are PENDING_APPROVAL,
PENDING_AUTO_APPROVAL, APPROVED, and COMPLETED, which the official client's answers for SoftLayer_Billing_Order have
(softlayer-python, SoftLayer/fixtures). Any status that is not listed here stands: the machine may be there and billed.
"""
CLOCKS_DIFFER_BY = timedelta(hours=1)
"""An order that the account dates so long before it was sent may be the one: its clock is not this computer's."""


def of_guest(guest: Mapping[str, Any], listed: Sequence[Order]) -> Order | None:
    """Find the order that a guest came from: the one its billing item names, else the newest for its name."""
    named = _order_of(guest.get("billingItem") or {})
    if named:
        return named
    name = (guest.get("hostname"), guest.get("domain"))
    fitting = [order for order in listed if any(name == _name(item) for item in order.get("items") or [])]
    return max(fitting, key=lambda order: int(order["id"]), default=None)


def is_waiting(order: Order | None) -> bool:
    """Tell whether a person has to approve it first: PENDING_APPROVAL, PENDING_AUTO_APPROVAL and the like."""
    return "PENDING" in _status(order)


def is_refused(order: Order | None) -> bool:
    """Tell whether it was certainly refused or withdrawn."""
    return _status(order) in REFUSED


def is_over(order: Order, items: Sequence[Mapping[str, Any]]) -> bool:
    """Tell whether all that an order made was cancelled: its billing items are listed, and each has its end."""
    its = [each for each in items if str(_order_of(each).get("id")) == str(order["id"])]
    return bool(its) and all(each.get("cancellationDate") for each in its)


def waiting_unshown(listed: Sequence[Order], guests: Sequence[Mapping[str, Any]]) -> Order | None:
    """Find an order that waits for a person and of which no guest is shown."""
    shown = {(each.get("hostname"), each.get("domain")) for each in guests}
    return next(
        (
            order
            for order in listed
            # The parts of an order may bear no name of their own.
            if is_waiting(order)
            and any(item.get("hostName") and _name(item) not in shown for item in order.get("items") or [])
        ),
        None,
    )


def may_be_of(order: Order, hostname: str, since: datetime) -> bool:
    """Tell whether something of this host name is in the order, and whether it was placed since then."""
    placed = datetime.fromisoformat(str(order["createDate"])) if order.get("createDate") else since
    is_named = any(item.get("hostName") == hostname for item in order.get("items") or [])
    return is_named and placed >= since - CLOCKS_DIFFER_BY


def as_status(order: Order) -> OrderStatus:
    """Read an order as the kernel sees it."""
    return OrderStatus(str(order["id"]), described(order), is_waiting(order), is_refused(order))


def described(order: Order | None) -> str:
    """Name the order and its status for a person."""
    if not order:
        return "its order is in no list"
    return f"its order {order['id']} {f'is {_status(order)}' if _status(order) else 'cannot be read'}"


def _order_of(item: Mapping[str, Any]) -> Order:
    return (item.get("orderItem") or {}).get("order") or {}


def _status(order: Order | None) -> str:
    return str((order or {}).get("status") or "").upper()


def _name(item: Mapping[str, Any]) -> tuple[Any, Any]:
    return item.get("hostName"), item.get("domainName")
