"""The key by which fault injection counts calls: a name, because ids depend on the order of threads."""

import json
from typing import Any

from emulator.softlayer.account import Account
from emulator.softlayer.calls import Call

ORDERS = ("createObject", "createObjects", "placeOrder", "verifyOrder", "generateOrderTemplate")


def about(account: Account, call: Call) -> str | None:
    """The name of the guest, or the label of the object, that a call is about."""
    if call.identifier not in (None, ""):
        return _named(account, call)
    if call.method not in ORDERS or not call.arguments:
        return None
    return _ordered(account, call.arguments[0])


def fault_key(account: Account, call: Call) -> str:
    """What tells the calls of one method apart: the object that they are about, or the filter of a list."""
    return (
        about(account, call) or str(call.identifier or "") or json.dumps(call.filter or "", sort_keys=True, default=str)
    )


def _named(account: Account, call: Call) -> str | None:
    if not str(call.identifier).isdigit():
        return None
    number = int(call.identifier)
    if call.service == "SoftLayer_Billing_Item":
        item = account.store.billing_items.read(number)
        return f"{item.hostname}.{item.domain}" if item else None
    guest = account.store.guests.read(number) if call.service == "SoftLayer_Virtual_Guest" else None
    return guest.name if guest else None


def _ordered(account: Account, wanted: Any) -> str | None:
    """The first thing of an order; the shape is whatever the caller sent."""
    if isinstance(wanted, list):
        return _ordered(account, wanted[0]) if wanted else None
    if not isinstance(wanted, dict):
        return None
    for inner in ("orderContainers", "virtualGuests"):
        if isinstance(wanted.get(inner), list):
            return _ordered(account, wanted[inner])
    if wanted.get("hostname") and wanted.get("domain"):
        return f"{wanted['hostname']}.{wanted['domain']}"
    guest = account.store.guests.read(wanted["id"]) if isinstance(wanted.get("id"), int) else None
    label = wanted.get("label") or wanted.get("name") or (guest.name if guest else None)
    return str(label) if label else None
