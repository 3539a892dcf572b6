"""The invoice on the command line: everything the account was charged up to a moment."""

from datetime import datetime
from typing import Any

from emulator.settings import UsageError
from emulator.softlayer import invoices
from emulator.softlayer.account import Account
from emulator.softlayer.billing import bill, started_hours
from emulator.softlayer.dates import CENTRAL, iso
from emulator.softlayer.invoices import Entry, Invoice


class MomentError(UsageError):
    """No invoice can be written for this moment; the message is a full sentence."""


def report(account: Account, at: str | None) -> dict[str, Any]:
    """The invoice up to a moment (default: now); lines are exact, the bill is their sum in cents."""
    moment = account.now if at is None else _moment(at, account.now)
    record = invoices.invoice(account, invoices.BEGINNING, moment)
    return {
        "account": account.settings.account_name,
        "at": iso(moment),
        "currency": account.catalog.currency,
        "items": [_entry(entry, record) for entry in record.entries],
        "total": f"{record.total:f}",
        "bill": str(bill(account, moment)),
    }


def as_text(invoice: dict[str, Any]) -> str:
    """The invoice as a table."""
    lines = [f"invoice of {invoice['account']} up to {invoice['at']}, in {invoice['currency']}"]
    for item in invoice["items"]:
        lines.append(f"{item['id']:>8}  {item['amount']:>14}  {item['name']}, {item['billing']}, {item['state']}")
        lines += [
            f"          {part['amount']:>14}    {part['description']}"
            for part in item["parts"]
            if part["amount"] != "0"
        ]
    lines.append(f"   total  {invoice['total']:>14}")
    lines.append(f"    bill  {invoice['bill']:>14}")
    return "\n".join(lines)


def _entry(entry: Entry, record: Invoice) -> dict[str, Any]:
    item = entry.item
    over = item.closed is not None and item.closed <= record.end
    until = item.closed if over else record.end
    hours = started_hours(item.opened, until)
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
