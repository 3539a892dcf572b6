"""Invoices: the charges between two moments, line by line, and the report of them that the command line shows."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from emulator.settings import UsageError
from emulator.softlayer import billing
from emulator.softlayer.account import Account
from emulator.softlayer.dates import CENTRAL, anniversaries_before, anniversary, iso
from emulator.softlayer.records import BillingItem, Fee

BEGINNING = 0.0  # before everything: the first order is charged at the very moment that makes the billing day


class MomentError(UsageError):
    """No invoice can be written for this moment; the message is a full sentence."""


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

    end: float
    entries: tuple[Entry, ...]

    @property
    def total(self) -> Decimal:
        """The dollars of all items."""
        return sum((entry.total for entry in self.entries), Decimal())


def invoice(account: Account, start: float, end: float) -> Invoice:
    """The invoice of any period."""
    every = [
        _entry(item, start, end) for item in sorted(account.store.billing_items.read_all(), key=lambda each: each.id)
    ]
    return Invoice(end, tuple(entry for entry in every if entry.lines))


def period_start(account: Account, item: BillingItem) -> float:
    """The start of the billing period that an item shows: the current one, or a closed item's last."""
    until = account.now if item.closed is None else min(item.closed, account.now)
    return max(item.opened, *(date for date in _dates(account) if date <= until))


def report(account: Account, at: str | None) -> dict[str, Any]:
    """The invoice up to a moment (default: now); lines are exact, the bill is their sum in cents."""
    moment = account.now if at is None else _moment(at, account.now)
    record = invoice(account, BEGINNING, moment)
    return {
        "account": account.settings.account_name,
        "at": iso(moment),
        "currency": account.catalog.currency,
        "items": [_shown(entry, record) for entry in record.entries],
        "total": f"{record.total:f}",
        "bill": str(billing.bill(account, moment)),
    }


def as_text(shown: dict[str, Any]) -> str:
    """The invoice as a table."""
    lines = [f"invoice of {shown['account']} up to {shown['at']}, in {shown['currency']}"]
    for item in shown["items"]:
        lines.append(f"{item['id']:>8}  {item['amount']:>14}  {item['name']}, {item['billing']}, {item['state']}")
        lines += [
            f"          {part['amount']:>14}    {part['description']}"
            for part in item["parts"]
            if part["amount"] != "0"
        ]
    lines.append(f"   total  {shown['total']:>14}")
    lines.append(f"    bill  {shown['bill']:>14}")
    return "\n".join(lines)


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


def _shown(entry: Entry, record: Invoice) -> dict[str, Any]:
    item = entry.item
    over = item.closed is not None and item.closed <= record.end
    until = item.closed if over else record.end
    hours = billing.started_hours(item.opened, until)
    return {
        "id": item.id,
        "name": f"{item.hostname}.{item.domain}" if item.hostname else f"{item.kind} {item.resource_id}",
        "kind": item.kind,
        "billing": f"{hours} started hours" if item.hourly else "monthly",
        "opened": iso(item.opened),
        "closed": iso(item.closed) if over else None,
        "ends": iso(item.ends) if item.ends and not over else None,
        "state": f"closed {iso(item.closed)}" if over else f"ends {iso(item.ends)}" if item.ends else "open",
        "amount": f"{entry.total:f}",
        "parts": [
            {
                "id": line.fee.id,
                "category": line.fee.category,
                "description": line.fee.description,
                "amount": f"{line.amount:f}",
            }
            for line in entry.lines
        ],
    }


def _moment(text: str, now: float) -> float:
    try:
        read = datetime.fromisoformat(text)
    except ValueError as wrong:
        raise MomentError(f"'{text}' is not a date. Give one as 2026-11-21T18:00, or with its offset.") from wrong
    moment = (read if read.tzinfo else read.replace(tzinfo=CENTRAL)).timestamp()
    if moment > now:
        raise MomentError(f"The account's clock shows {iso(now)}; what {iso(moment)} will have cost is not known yet.")
    return moment
