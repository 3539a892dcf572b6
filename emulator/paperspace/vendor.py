"""The Paperspace account as the emulator's commands see it: its key file, what it holds, and how it is opened."""

from pathlib import Path
from typing import Any

from emulator.machines.certificates import AUTHORITY_FILE
from emulator.machines.host_tools import write_private
from emulator.paperspace.account import Account
from emulator.paperspace.api import Paperspace
from emulator.paperspace.billing import CENT, bill, charged
from emulator.paperspace.lifecycle import MachineTargets
from emulator.paperspace.records import BillingItem, Drive, Machine
from emulator.paperspace.settings import Settings
from emulator.paperspace.views import moment
from emulator.shared.vendor import Vendor

KEY_FILE = "paperspace-api-key"


def write_key_file(settings: Settings) -> Path:
    """Write the API key and where the account is, readable by its owner alone."""
    path = settings.state / KEY_FILE
    lines = ["[paperspace]", f"api_key = {settings.api_key}", f"endpoint_url = {settings.api}"]
    lines += [f"verify = {settings.state / AUTHORITY_FILE}"] if settings.tls else []
    write_private(path, "\n".join(lines) + "\n")
    return path


def holdings(account: Account) -> dict[str, Any]:
    """Machines, drives, everything that is billed, the bill and the clock."""
    store, items = account.store, account.store.billing_items.living()
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


PAPERSPACE = Vendor(
    settings=Settings,
    folder="emulator-paperspace",
    account=Account,
    routes=lambda account: Paperspace(account).routes(),
    machine_source=MachineTargets,
    holdings=holdings,
    client_file=KEY_FILE,
    write_client_file=write_key_file,
    commands={},
)
