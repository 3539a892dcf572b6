"""What things cost: each part has a fee for every started hour or month until its end.

A charge is made at the moment its hour or month begins, so what was charged up to a moment never changes afterwards, and
the charges of two periods that follow each other are those of both together. Amounts are exact; only sums are shown in cents.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

from emulator.softlayer.account import Account
from emulator.softlayer.catalog import Price, load_catalog
from emulator.softlayer.dates import anniversaries_before
from emulator.softlayer.records import BillingItem, Fee, Order

HOUR_S = 3600.0
CENT = Decimal("0.01")
BILLED_SINCE = "billed_since"


@dataclass(frozen=True)
class Billed:
    """The resource that a billing item is for."""

    kind: str
    resource_id: int
    datacenter: str
    hostname: str = ""
    domain: str = ""
    flavor: str = ""
    category: str = "guest_core"
    notes: str = ""


def open_item(account: Account, order: Order, prices: Iterable[Price], what: Billed, *, hourly: bool) -> BillingItem:
    """Open a billing item with one part for each price."""
    moment = account.now  # Read once: the clock runs, and all parts have to begin at the same moment.
    account.store.facts.setdefault(BILLED_SINCE, repr(moment))
    item = BillingItem(
        id=account.next_id(),
        order_id=order.id,
        order_item_id=account.next_id(),
        resource_id=what.resource_id,
        hostname=what.hostname,
        domain=what.domain,
        datacenter=what.datacenter,
        flavor=what.flavor,
        hourly=hourly,
        opened=moment,
        fees=[_fee(account, price, moment) for price in prices],
        notes=what.notes,
        kind=what.kind,
        category=what.category,
    )
    account.store.billing_items[item.id] = item
    return item


def billed_since(account: Account) -> float | None:
    """When the account's first order was billed, which fixes its billing day; None before that."""
    moment = account.store.facts.get(BILLED_SINCE)
    return None if moment is None else float(moment)


def close(item: BillingItem, moment: float) -> None:
    """Close an item with all its parts; it stays readable."""
    item.closed = moment
    for fee in item.fees:
        fee.closed = fee.closed or moment


def started_hours(opened: float, until: float) -> int:
    """Hours that are billed between two moments: each started one counts, the first from the first second."""
    return max(1, math.ceil(round(until - opened, 3) / HOUR_S))


def ended(fee: Fee, item: BillingItem) -> float | None:
    """When a part stops being charged, as far as that is known."""
    return min((moment for moment in (fee.closed, item.closed, item.ends) if moment is not None), default=None)


def charged_for(fee: Fee, item: BillingItem, until: float) -> Decimal:
    """The dollars charged for one part up to a moment."""
    if until < fee.opened:
        return Decimal()
    end = ended(fee, item)
    until = until if end is None else min(until, end)
    if item.hourly:
        return Decimal(fee.hourly) * started_hours(fee.opened, until)
    return _per_month(fee) * (1 + anniversaries_before(item.opened, until))


def charged(item: BillingItem, until: float) -> Decimal:
    """The dollars charged for an item with all its parts up to a moment."""
    return sum((charged_for(fee, item, until) for fee in item.fees), Decimal())


def hours_used(item: BillingItem, now: float) -> int:
    """The started hours of a billing item."""
    return started_hours(item.opened, now if item.closed is None else item.closed)


def to_the_end(item: BillingItem) -> list[Fee]:
    """The parts that an item has, or had at its end; not those that were replaced before."""
    return [fee for fee in item.fees if fee.closed in (None, item.closed)]


def per_hour(item: BillingItem) -> Decimal:
    """The dollars per hour of the parts that are open; of a closed item, those that were open to its end."""
    return sum((Decimal(fee.hourly) for fee in to_the_end(item)), Decimal())


def per_month(item: BillingItem) -> Decimal:
    """The dollars per month of the parts that are open; of a closed item, those that were open to its end."""
    return sum((_per_month(fee) for fee in to_the_end(item)), Decimal())


def bill(account: Account, at: float | None = None) -> Decimal:
    """What the account has to pay in all up to a moment (default: now), rounded to cents."""
    moment = account.now if at is None else at
    return sum((charged(item, moment) for item in account.store.billing_items.read_all()), Decimal()).quantize(CENT)


def _fee(account: Account, price: Price, moment: float) -> Fee:
    return Fee(account.next_id(), price.category.code, price.description, str(price.hourly), moment)


def _per_month(fee: Fee) -> Decimal:
    return load_catalog().monthly(Decimal(fee.hourly))
