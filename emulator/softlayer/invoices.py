"""Invoices: the charges between two moments, line by line; the bill is the sum of all of them."""

import itertools
from dataclasses import dataclass
from decimal import Decimal

from emulator.softlayer import billing
from emulator.softlayer.account import Account
from emulator.softlayer.dates import anniversaries_before, anniversary, next_anniversary
from emulator.softlayer.records import BillingItem, Fee

# Ids are told apart by size: the account's objects count up from 1001 and stay below the first invoice.
ID_STEP = 1_000_000
BEGINNING = 0.0  # before everything: the first order is charged at the very moment that makes the billing day


@dataclass(frozen=True)
class Line:
    """What one part of a billing item cost in the period."""

    fee: Fee
    amount: Decimal


@dataclass(frozen=True)
class Entry:
    """What one billing item cost in the period: its own line, then its children's."""

    item: BillingItem
    lines: tuple[Line, ...]

    @property
    def total(self) -> Decimal:
        """The dollars of the item with all its parts."""
        return sum((line.amount for line in self.lines), Decimal())


@dataclass(frozen=True)
class Invoice:
    """Everything that was charged in a period, up to its ``end``."""

    id: int
    end: float
    entries: tuple[Entry, ...]

    @property
    def total(self) -> Decimal:
        """The dollars of all items."""
        return sum((entry.total for entry in self.entries), Decimal())


def invoice(account: Account, start: float, end: float, number: int = 0) -> Invoice:
    """The invoice of any period."""
    every = [
        _entry(item, start, end) for item in sorted(account.store.billing_items.read_all(), key=lambda each: each.id)
    ]
    return Invoice((number + 1) * ID_STEP, end, tuple(entry for entry in every if entry.lines))


def issued(account: Account) -> list[Invoice]:
    """The invoices of the account's months that are over, oldest first."""
    dates = _dates(account)
    return [invoice(account, *period, number) for number, period in enumerate(itertools.pairwise(dates))]


def pending(account: Account) -> Invoice | None:
    """The invoice of the current month, as it would be now; None if nothing was ever ordered."""
    dates = _dates(account)
    return invoice(account, dates[-1], account.now, len(dates) - 1) if dates else None


def every(account: Account) -> list[Invoice]:
    """The issued invoices and the pending one."""
    return [*issued(account), *filter(None, [pending(account)])]


def due_next(account: Account, item: BillingItem, fee: Fee | None = None) -> Decimal:
    """The next invoice's charge for an item or one part: hours so far, and months that begin by then."""
    dates, first = _dates(account), billing.billed_since(account)
    if first is None:
        return Decimal()
    until = account.now if item.hourly else next_anniversary(first, account.now)
    if fee:
        return billing.charged_for(fee, item, until) - billing.charged_for(fee, item, dates[-1])
    return billing.charged(item, until) - billing.charged(item, dates[-1])


def period_start(account: Account, item: BillingItem) -> float:
    """The start of the billing period that an item shows: the current one, or a closed item's last."""
    until = account.now if item.closed is None else min(item.closed, account.now)
    return max(item.opened, *(date for date in _dates(account) if date <= until))


def _dates(account: Account) -> list[float]:
    """The beginning, then the billing dates up to now: the day of the account's first order, every month."""
    first = billing.billed_since(account)
    if first is None:
        return []
    count = anniversaries_before(first, account.now)
    return [BEGINNING, *(anniversary(first, number) for number in range(1, count + 1))]


def _entry(item: BillingItem, start: float, end: float) -> Entry:
    own = [fee for fee in item.fees if fee.category == item.category]
    parts = [*own, *(fee for fee in item.fees if fee.category != item.category)]
    return Entry(item, tuple(_line(fee, item, start, end) for fee in parts if _is_in(fee, item, start, end)))


def _line(fee: Fee, item: BillingItem, start: float, end: float) -> Line:
    return Line(fee, billing.charged_for(fee, item, end) - billing.charged_for(fee, item, start))


def _is_in(fee: Fee, item: BillingItem, start: float, end: float) -> bool:
    """Whether a part existed in the period; free ones are listed too."""
    over = billing.ended(fee, item)
    return fee.opened <= end and (over is None or over > start)
