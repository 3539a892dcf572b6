"""What a SoftLayer account holds, for the emulator's status."""

from typing import Any

from emulator.softlayer.account import Account
from emulator.softlayer.approval import PENDING
from emulator.softlayer.billing import bill
from emulator.softlayer.dates import iso
from emulator.softlayer.records import Guest, Order


def holdings(account: Account) -> dict[str, Any]:
    """Machines, waiting orders, open billing items, the bill and the clock."""
    store = account.store
    return {
        "machines": [_machine(guest) for guest in sorted(store.guests.read_all(), key=lambda each: each.id)],
        "waiting": [_waiting(account, order) for order in store.orders.read_all() if order.status == PENDING],
        "open_billing_items": sum(item.closed is None for item in store.billing_items.living()),
        "bill": str(bill(account)),
        "currency": account.catalog.currency,
        "clock": iso(account.now),
    }


def _waiting(account: Account, order: Order) -> dict[str, Any]:
    """An order that waits for a person's approval."""
    guests = [account.store.guests.read(item.resource_id) for item in order.held]
    return {"id": order.id, "names": [guest.name for guest in guests if guest]}


def _machine(guest: Guest) -> dict[str, Any]:
    if guest.cancelled is not None:
        phase = "cancelled"
    elif guest.provisioned is None:
        phase = "provisioning" if guest.is_begun else "waiting"
    else:
        phase = "ready" if guest.powered else "off"
    return {
        "guest_id": guest.id,
        "name": guest.name,
        "flavor": guest.flavor,
        "datacenter": guest.datacenter,
        "state": phase,
        "transaction": guest.transaction.group if guest.transaction else None,
        "private_address": guest.private.address,
        "public_address": guest.public.address if guest.public else None,
        "error": guest.machine_error,
    }
