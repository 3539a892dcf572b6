"""Charges: each billing item has a fee for every started hour or month until its end.

A charge is made at the moment its hour or month begins, so what was charged up to a moment never changes afterwards, and
the charges of two periods that follow each other are those of both together. Amounts are exact; only sums are shown in cents.
"""

import math
from collections.abc import Iterable
from decimal import Decimal

from emulator.softlayer.account import Account
from emulator.softlayer.catalog import Price, load_catalog
from emulator.softlayer.dates import anniversaries_before, anniversary
from emulator.softlayer.records import BillingItem, Fee

HOUR_S = 3600.0
CENT = Decimal("0.01")
BILLED_SINCE = "billed_since"


def open_item(account: Account, item: BillingItem) -> None:
    """Begin to bill an item; the account's first one fixes its billing day."""
    item.opened = account.now
    account.store.facts.setdefault(BILLED_SINCE, repr(item.opened))
    account.store.billing_items[item.id] = item


def fees_of(account: Account, prices: Iterable[Price]) -> list[Fee]:
    """One part for each price."""
    return [Fee(account.next_id(), each.category, each.description, str(each.hourly)) for each in prices]


def period_start(account: Account, item: BillingItem, moment: float) -> float:
    """Start of the billing period that contains ``moment``, or of the item where that is later."""
    first = float(account.store.facts[BILLED_SINCE])
    months = anniversaries_before(first, moment)
    return max(item.opened, anniversary(first, months)) if months else item.opened


def started_hours(opened: float, until: float) -> int:
    """Hours that are billed between two moments: each started one counts, the first from the first second."""
    return max(1, math.ceil(round(until - opened, 3) / HOUR_S))


def ended(item: BillingItem) -> float | None:
    """The moment from which an item is charged no more; None while no end is set."""
    return item.ends if item.closed is None else item.closed


def periods(item: BillingItem, until: float) -> int:
    """Hours, or months, that are charged up to a moment: those that have begun."""
    if until < item.opened:
        return 0
    end = ended(item)
    until = until if end is None else min(until, end)
    if item.hourly:
        return started_hours(item.opened, until)
    return 1 + anniversaries_before(item.opened, until)


def recent_periods(account: Account, item: BillingItem, moment: float) -> int:
    """Hours, or months, that are charged in the billing period that contains ``moment``; earlier ones are on their invoices."""
    begun = period_start(account, item, moment)
    return periods(item, moment) - (periods(item, begun) if begun > item.opened else 0)


def rate(item: BillingItem, fees: Iterable[Fee]) -> Decimal:
    """The dollars for parts of an item in each of its periods."""
    return per_hour(fees) if item.hourly else sum(map(per_month, fees), Decimal())


def charged(item: BillingItem, until: float) -> Decimal:
    """The dollars charged for an item with all its parts up to a moment."""
    return rate(item, item.fees) * periods(item, until)


def per_hour(fees: Iterable[Fee]) -> Decimal:
    """The dollars per hour of parts."""
    return sum((Decimal(fee.hourly) for fee in fees), Decimal())


def per_month(fee: Fee) -> Decimal:
    """The dollars per month of one part."""
    return load_catalog().monthly(Decimal(fee.hourly))


def due_next(account: Account) -> Decimal:
    """The dollars of the next invoice up to now."""
    now = account.now
    charges = (
        rate(each, each.fees) * recent_periods(account, each, now) for each in account.store.billing_items.read_all()
    )
    return sum(charges, Decimal()).quantize(CENT)


def bill(account: Account) -> Decimal:
    """The sum of all charges of the account up to now, rounded to cents."""
    now = account.now
    return sum((charged(item, now) for item in account.store.billing_items.read_all()), Decimal()).quantize(CENT)
