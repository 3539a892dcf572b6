"""What a Paperspace account holds, for the emulator's status."""

from typing import Any

from emulator.paperspace.account import Account
from emulator.paperspace.billing import CENT, bill, charged, open_items
from emulator.paperspace.records import BillingItem, Drive, Machine
from emulator.paperspace.views import moment


def holdings(account: Account) -> dict[str, Any]:
    """Machines, drives, everything that is billed, the bill and the clock."""
    store, items = account.store, open_items(account)
    return {
        "machines": [_machine(each) for each in sorted(store.machines.read_all(), key=lambda each: each.id)],
        "drives": [_drive(each) for each in sorted(store.drives.read_all(), key=lambda each: each.id)],
        "open_billing_items": len(items),
        "billed": [_billed(account, each) for each in items],
        "bill": str(bill(account)),
        "currency": account.catalog.currency,
        "clock": moment(account.now),
    }


def _machine(machine: Machine) -> dict[str, Any]:
    return {
        "guest_id": machine.ref,
        "name": machine.name,
        "flavor": machine.machine_type,
        "region": machine.region,
        "state": "deleting" if machine.deleting else machine.state,
        "private_address": machine.private_ip,
        "public_address": machine.public_ip,
        "error": machine.error,
    }


def _drive(drive: Drive) -> dict[str, Any]:
    return {
        "id": drive.ref,
        "name": drive.name,
        "region": drive.region,
        "size_gb": drive.size_gb,
        "address": drive.address,
        "error": drive.error,
    }


def _billed(account: Account, item: BillingItem) -> dict[str, Any]:
    return {
        "what": item.kind,
        "id": item.ref,
        "name": item.name,
        "per_hour": item.per_hour,
        "at_most_per_month": item.per_month,
        "since": moment(item.opened),
        "charged": str(charged(item, account.now).quantize(CENT)),
    }
