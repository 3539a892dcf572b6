"""SoftLayer_Billing_*: reading what is billed and ordered, and cancelling through the billing item."""

from dataclasses import replace
from typing import Any

from emulator.softlayer import cancellation, invoices
from emulator.softlayer.account import Account
from emulator.softlayer.calls import Call
from emulator.softlayer.faults import not_found, public
from emulator.softlayer.objects import bills
from emulator.softlayer.objects import invoices as invoice_views
from emulator.softlayer.records import BillingItem
from emulator.softlayer.services.finding import find, identifier
from emulator.softlayer.views import Listing, View


def get_item(account: Account, call: Call) -> View:
    """A billing item, top level or child, open or closed."""
    item = _parent(account, call)
    if item is None:
        return bills.item_view(account, find(account.store.billing_items, call))
    return bills.child_view(account, item, next(fee for fee in item.fees if fee.id == identifier(call)))


def get_children(account: Account, call: Call) -> Listing:
    """The parts of a billing item."""
    return Listing(get_item(account, call).read("children"), "children")


def cancel_item(account: Account, call: Call) -> bool:
    """Cancel an item with its parts, at once or on its anniversary; other arguments change nothing."""
    parent = _parent(account, call)
    if parent:
        raise public(f"Billing item {call.identifier} is a part of billing item {parent.id}. Cancel that one.")
    cancellation.cancel(account, find(account.store.billing_items, call), immediate=bool(call.argument(0, False)))
    return True


def cancel_service(account: Account, call: Call) -> bool:
    """Cancel at once."""
    return cancel_item(account, replace(call, arguments=(True,)))


def cancel_on_anniversary(account: Account, call: Call) -> bool:
    """Cancel a monthly item at the end of what is paid."""
    return cancel_item(account, replace(call, arguments=(False,)))


def void_cancellation(account: Account, call: Call) -> bool:
    """Undo a cancellation that is still pending."""
    cancellation.void(find(account.store.billing_items, call))
    return True


def get_order(account: Account, call: Call) -> View:
    """An order."""
    return bills.order(account, find(account.store.orders, call))


def get_orders(account: Account, call: Call) -> Listing:
    """Every order, filtered without a root."""
    return Listing([bills.order(account, each) for each in account.store.orders.values()])


def get_invoice(account: Account, call: Call) -> View:
    """An invoice, issued or pending."""
    return invoice_views.invoice(account, _invoice(account, call))


def get_invoice_items(account: Account, call: Call) -> Listing:
    """Every line of an invoice, parents and children alike."""
    return Listing(invoice_views.every_item(account, _invoice(account, call)), "items")


def get_top_level_invoice_items(account: Account, call: Call) -> Listing:
    """The lines of an invoice that stand for whole things."""
    return Listing(invoice_views.top_items(account, _invoice(account, call)), "invoiceTopLevelItems")


def get_billed_item(account: Account, call: Call) -> View:
    """The billing item behind a line of an invoice."""
    return get_item(account, replace(call, identifier=int(identifier(call)) % invoices.ID_STEP))


def no_events(account: Account, call: Call) -> list[Any]:
    """There is never an announcement."""
    return []


def _parent(account: Account, call: Call) -> BillingItem | None:
    """The item that the named one is a part of."""
    key = identifier(call)
    every = account.store.billing_items
    if key in every:
        return None
    return next((item for item in every.read_all() if any(fee.id == key for fee in item.fees)), None)


def _invoice(account: Account, call: Call) -> invoices.Invoice:
    key = identifier(call)
    found = next((each for each in invoices.every(account) if each.id == key), None)
    if found is None:
        raise not_found(call.identifier)
    return found


SERVICES = {
    "SoftLayer_Billing_Item": {
        "getObject": get_item,
        "getChildren": get_children,
        "cancelItem": cancel_item,
        "cancelService": cancel_service,
        "cancelServiceOnAnniversaryDate": cancel_on_anniversary,
        "voidCancelService": void_cancellation,
    },
    "SoftLayer_Billing_Invoice": {
        "getObject": get_invoice,
        "getItems": get_invoice_items,
        "getInvoiceTopLevelItems": get_top_level_invoice_items,
    },
    "SoftLayer_Billing_Invoice_Item": {"getBillingItem": get_billed_item},
    "SoftLayer_Billing_Order": {"getObject": get_order, "getAllObjects": get_orders},
    "SoftLayer_Notification_Occurrence_Event": {"getAllObjects": no_events},
}
