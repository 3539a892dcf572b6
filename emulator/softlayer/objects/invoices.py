"""Invoices and their lines as the API shows them."""

from decimal import Decimal
from typing import Any

from emulator.softlayer import invoices
from emulator.softlayer.account import Account
from emulator.softlayer.billing import CENT
from emulator.softlayer.dates import iso
from emulator.softlayer.invoices import Entry, Invoice, Line
from emulator.softlayer.objects import bills, goods, places
from emulator.softlayer.views import View


def invoice(account: Account, record: Invoice) -> View:
    """An invoice; of the issued ones the last is open, the others are paid."""
    last = max((each.id for each in invoices.issued(account)), default=0)
    status = "PENDING" if record.id > last else "OPEN" if record.id == last else "CLOSED"
    total = str(record.total.quantize(CENT))
    return View(
        {
            "id": record.id,
            "accountId": account.id,
            "createDate": iso(record.end),
            "statusCode": status,
            "typeCode": "RECURRING",
            "startingBalance": "0",
            "endingBalance": total if status == "OPEN" else "0",
        },
        {
            "amount": lambda: total,
            "invoiceTotalAmount": lambda: total,
            "invoiceTotalRecurringAmount": lambda: total,
            "itemCount": lambda: sum(len(entry.lines) for entry in record.entries),
            "items": lambda: every_item(account, record),
            "invoiceTopLevelItems": lambda: top_items(account, record),
        },
    )


def top_items(account: Account, record: Invoice) -> list[View]:
    """The lines that stand for whole things, each with its children."""
    return [_top_item(account, record, entry) for entry in record.entries]


def every_item(account: Account, record: Invoice) -> list[View]:
    """Every line, a thing's own before its children's."""
    tops = top_items(account, record)
    return [line for top in tops for line in (top, *top.read("children"))]


def _top_item(account: Account, record: Invoice, entry: Entry) -> View:
    """An item's own line with its own amount; the official client adds the children's."""
    item, own = entry.item, entry.lines[0]
    local = _line(record, own, item.id) | {
        "billingItemId": item.id,
        "hostName": item.hostname,
        "domainName": item.domain,
    }
    place = account.catalog.datacenter(item.datacenter)
    children = [
        View(
            _line(record, line, line.fee.id) | {"parentId": record.id + item.id, "billingItemId": line.fee.id},
            {"category": lambda line=line: goods.category(account, line.fee.category)},
        )
        for line in entry.lines[1:]
    ]
    return View(
        local,
        {
            "category": lambda: goods.category(account, own.fee.category),
            "location": lambda: places.datacenter(place),
            "children": lambda: children,
            "billingItem": lambda: bills.item_view(account, item),
            "totalRecurringAmount": lambda: _money(entry.total),
        },
    )


def _line(record: Invoice, line: Line, number: int) -> dict[str, Any]:
    """Money as invoices have it: text. The amounts are exact, so that they add up to the invoice."""
    return {
        "id": record.id + number,
        "invoiceId": record.id,
        "categoryCode": line.fee.category,
        "description": line.fee.description,
        "createDate": iso(record.end),
        "recurringFee": _money(line.amount),
        "recurringAfterTaxAmount": _money(line.amount),
        "oneTimeFee": "0",
        "oneTimeAfterTaxAmount": "0",
    }


def _money(amount: Decimal) -> str:
    return f"{amount:f}"
