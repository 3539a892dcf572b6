"""The invoice of everything that was charged up to a moment, line by line, as the command line shows it."""

from datetime import datetime
from decimal import Decimal
from typing import Any

from emulator.shared.settings import UsageError
from emulator.softlayer import billing
from emulator.softlayer.account import Account
from emulator.softlayer.dates import CENTRAL, iso
from emulator.softlayer.records import BillingItem


def report(account: Account, at: str | None) -> dict[str, Any]:
    """The invoice up to a moment (default: now); lines are exact, the bill is their sum in cents."""
    moment = account.now if at is None else _moment(at, account.now)
    items = [item for item in account.store.billing_items.read_all() if item.opened <= moment]
    total = sum((billing.charged(item, moment) for item in items), Decimal())
    return {
        "account": account.settings.account_name,
        "at": iso(moment),
        "currency": account.catalog.currency,
        "items": [_shown(item, moment) for item in items],
        "total": f"{total:f}",
        "bill": str(total.quantize(billing.CENT)),
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


def _shown(item: BillingItem, moment: float) -> dict[str, Any]:
    count = billing.periods(item, moment)
    state = "open"
    if item.closed is not None and item.closed <= moment:
        state = f"closed {iso(item.closed)}"
    elif item.ends is not None:
        state = f"ends {iso(item.ends)}"
    return {
        "id": item.id,
        "name": f"{item.hostname}.{item.domain}" if item.hostname else f"{item.category} {item.resource_id}",
        "billing": f"{count} started hours" if item.hourly else "monthly",
        "opened": iso(item.opened),
        "state": state,
        "amount": f"{billing.charged(item, moment):f}",
        "parts": [
            {"description": fee.description, "amount": f"{billing.rate(item, [fee]) * count:f}"} for fee in item.fees
        ],
    }


def _moment(text: str, now: float) -> float:
    try:
        read = datetime.fromisoformat(text)
    except ValueError as wrong:
        raise UsageError(f"'{text}' is not a date. Give one as 2026-11-21T18:00, or with its offset.") from wrong
    moment = (read if read.tzinfo else read.replace(tzinfo=CENTRAL)).timestamp()
    if moment > now:
        raise UsageError(f"The account's clock shows {iso(now)}; what {iso(moment)} will have cost is not known yet.")
    return moment
