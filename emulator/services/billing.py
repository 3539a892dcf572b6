"""SoftLayer_Billing_*: reading what is billed and ordered, and cancelling through the billing item."""

from __future__ import annotations

from typing import Any

from .. import endings
from ..account import Account
from ..calls import Call
from ..faults import public
from ..objects import bills
from ..views import Listing, View
from .finding import find, identifier


def get_item(account: Account, call: Call) -> View:
    """A billing item, top level or child, open or closed."""
    key = identifier(call)
    for item in account.store.billing_items.values():
        view = bills.item_view(account, item)
        child = next((each for each in view.read("children") if each["id"] == key), None)
        if child:
            return View(child)
    return bills.item_view(account, find(account.store.billing_items, call))


def cancel_item(account: Account, call: Call) -> bool:
    """Cancel what is billed; at the anniversary is not emulated, and hourly guests have none."""
    item = find(account.store.billing_items, call)
    immediate = call.argument(0, False)
    if item.closed is not None:
        raise public(f"Billing item {item.id} is already cancelled.")
    if not (immediate or item.hourly):
        raise public(f"Billing item {item.id}: the emulator only cancels immediately. Pass true as first argument.")
    endings.end(account, item)
    return True


def cancel_service(account: Account, call: Call) -> bool:
    """Cancel at once."""
    return cancel_item(account, Call(call.service, call.method, (True,), call.identifier))


def get_order(account: Account, call: Call) -> View:
    """An order."""
    return bills.order(account, find(account.store.orders, call))


def get_orders(account: Account, call: Call) -> Listing:
    """Every order, filtered without a root."""
    return Listing([bills.order(account, each) for each in account.store.orders.values()])


def no_events(account: Account, call: Call) -> list[Any]:
    """There is never an announcement."""
    return []


SERVICES = {
    "SoftLayer_Billing_Item": {"getObject": get_item, "cancelItem": cancel_item, "cancelService": cancel_service},
    "SoftLayer_Billing_Order": {"getObject": get_order, "getAllObjects": get_orders},
    "SoftLayer_Notification_Occurrence_Event": {"getAllObjects": no_events},
}
