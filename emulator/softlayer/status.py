"""What the emulator says about itself: machines, open billing items, the bill and the clock."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from emulator.clock import iso
from emulator.softlayer.account import Account
from emulator.softlayer.approval import PENDING
from emulator.softlayer.billing import bill
from emulator.softlayer.records import Guest, Order


@dataclass(frozen=True)
class Status:
    """What the status of a running server is read from."""

    account: Account
    port: int


def status_of(account: Account, *, port: int, running: bool = True) -> dict[str, Any]:
    """The account's state as plain data."""
    settings, catalog = account.settings, account.catalog
    with account.lock:
        guests = [_machine(account, guest) for guest in sorted(account.store.guests.look(), key=lambda each: each.id)]
        open_items = sum(item.closed is None for item in account.store.billing_items.living())
        return {
            "account": settings.account_name,
            "machines": guests,
            "waiting": [_waiting(account, order) for order in account.store.orders.look() if order.status == PENDING],
            "open_billing_items": open_items,
            "bill": str(bill(account)),
            "currency": catalog.currency,
            "clock": iso(account.now),
            "clock_rate": settings.clock_rate,
            "running": running,
            "port": port,
            "state": str(settings.state),
            "trouble": account.trouble,
            "seed": settings.seed,
            "weather": dict(account.sky.met),
            "not_emulated": dict(account.not_emulated),
            "registry": f"{settings.registry_name}:{settings.registry_port}",
        }


def _waiting(account: Account, order: Order) -> dict[str, Any]:
    """An order that waits for a person's approval."""
    guests = [account.store.guests.peek(item.resource_id) for item in order.held]
    return {"id": order.id, "names": [guest.name for guest in guests if guest]}


def _machine(account: Account, guest: Guest) -> dict[str, Any]:
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
