"""Charges: every started hour until the end, some of them capped for each calendar month (UTC).

The vendor's price page: hourly prices from create to destroy; everything without a GPU stops at the price of a month.
"""

import math
from datetime import UTC, datetime
from decimal import Decimal

from emulator.paperspace.account import Account
from emulator.paperspace.catalog import Rate
from emulator.paperspace.records import BillingItem, Drive, Machine, Network, PublicIp

HOUR_S = 3600.0
CENT = Decimal("0.01")
MACHINE, DISK, DRIVE, ADDRESS, NETWORK = "machine", "machine disk", "shared drive", "public ip", "private network"


def open_for(account: Account, kind: str, what: Machine | Drive | Network | PublicIp, rate: Rate) -> None:
    """Begin to bill something."""
    item = BillingItem(
        id=account.next_id(),
        kind=kind,
        resource_id=what.id,
        ref=what.ref,
        name=getattr(what, "name", what.ref),
        per_hour=str(rate.per_hour),
        per_month=None if rate.per_month is None else str(rate.per_month),
        opened=account.now,
    )
    account.store.billing_items[item.id] = item


def close(account: Account, resource_id: int, *kinds: str) -> None:
    """End the bill of something, or only of some parts of it."""
    for item in account.store.billing_items.living():
        if item.resource_id == resource_id and (not kinds or item.kind in kinds):
            account.store.billing_items[item.id].closed = account.now


def charged(item: BillingItem, until: float) -> Decimal:
    """The dollars for an item up to a moment."""
    end = until if item.closed is None else min(until, item.closed)
    total, begin = Decimal(), item.opened
    while begin <= end:
        month_end = min(_next_month(begin), end)
        amount = Decimal(item.per_hour) * _started_hours(month_end - begin)
        total += amount if item.per_month is None else min(amount, Decimal(item.per_month))
        if month_end == end:
            break
        begin = month_end
    return total


def bill(account: Account) -> Decimal:
    """The sum of all charges of the team up to now, rounded to cents."""
    now = account.now
    return sum((charged(item, now) for item in account.store.billing_items.read_all()), Decimal()).quantize(CENT)


def _started_hours(seconds: float) -> int:
    return max(1, math.ceil(round(seconds, 3) / HOUR_S))


def _next_month(moment: float) -> float:
    here = datetime.fromtimestamp(moment, UTC)
    year, month = (here.year + 1, 1) if here.month == 12 else (here.year, here.month + 1)
    return datetime(year, month, 1, tzinfo=UTC).timestamp()
