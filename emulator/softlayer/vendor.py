"""The SoftLayer account as the emulator's commands see it: its client's file, its status, and the commands that it alone has."""

import json
from argparse import Namespace
from pathlib import Path
from typing import Any

from emulator.machines.certificates import AUTHORITY_FILE
from emulator.machines.host_tools import write_private
from emulator.shared import process
from emulator.shared.process import ProcessError
from emulator.shared.store import DATABASE_FILE
from emulator.shared.vendor import Command, Vendor
from emulator.softlayer import invoices
from emulator.softlayer.account import Account
from emulator.softlayer.api import SERVICES, Method, SoftLayer
from emulator.softlayer.billing import bill
from emulator.softlayer.dates import iso
from emulator.softlayer.guest_machines import GuestMachines
from emulator.softlayer.guests import PENDING
from emulator.softlayer.records import Guest, Order
from emulator.softlayer.settings import Settings

CONFIG_FILE = "softlayer.conf"
TIMEOUT_S = 60
METHODS_HEAD = """# What is emulated

Made by `python -m emulator methods`; a test holds it equal to the code. Every other method answers with the fault `-32601`,
which names it, and `python -m emulator status` counts it.
"""


def write_client_file(settings: Settings) -> Path:
    """Write the client's file, readable by its owner alone."""
    authority = [f"verify = {settings.state / AUTHORITY_FILE}"] if settings.tls else []
    lines = [
        "[softlayer]",
        f"username = {settings.username}",
        f"api_key = {settings.api_key}",
        f"endpoint_url = {settings.endpoint}",
        f"timeout = {TIMEOUT_S}",
        "proxy =",  # Without this line a proxy in ~/.softlayer would be used.
        *authority,
    ]
    path = settings.state / CONFIG_FILE
    write_private(path, "\n".join(lines) + "\n")
    return path


def holdings(account: Account) -> dict[str, Any]:
    """Machines, waiting orders, open billing items, the bill and the clock."""
    store = account.store
    return {
        "machines": [_machine(guest) for guest in sorted(store.guests.read_all(), key=lambda each: each.id)],
        "waiting": [_waiting(order) for order in store.orders.read_all() if order.status == PENDING],
        "open_billing_items": len(store.billing_items.living()),
        "bill": str(bill(account)),
        "currency": account.catalog.currency,
        "clock": iso(account.now),
    }


def _waiting(order: Order) -> dict[str, Any]:
    """An order that waits for a person's approval."""
    return {"id": order.id, "names": [f"{item.hostname}.{item.domain}" for item in order.held]}


def _machine(guest: Guest) -> dict[str, Any]:
    if guest.cancelled is not None:
        phase = "cancelled"
    elif guest.provisioned is None:
        phase = "provisioning" if guest.begun else "waiting"
    else:
        phase = "ready"
    return {
        "guest_id": guest.id,
        "name": guest.name,
        "flavor": guest.flavor,
        "datacenter": guest.datacenter,
        "state": phase,
        "private_address": guest.private.address,
        "public_address": guest.public.address,
        "error": guest.machine_error,
    }


def run_invoice(settings: Settings, arguments: Namespace) -> int:
    """Show what the account has been charged up to now, or up to --at, line by line."""
    if not (settings.state / DATABASE_FILE).exists():
        raise ProcessError(f"There is no account in {settings.state}. Start one: python -m emulator start")
    invoice = invoices.report(Account(settings), arguments.at)
    print(json.dumps(invoice, indent=2) if arguments.json else invoices.as_text(invoice))
    return 0


def run_approve(settings: Settings, arguments: Namespace) -> int:
    """Approve an order that waits for a person (setting approval = "pending")."""
    process.post(settings, f"/orders/{arguments.order}/approve")
    print(f"Order {arguments.order} is approved; its guests are being built and billed.")
    return 0


def run_refuse(settings: Settings, arguments: Namespace) -> int:
    """Refuse an order that waits for a person."""
    process.post(settings, f"/orders/{arguments.order}/refuse")
    print(f"Order {arguments.order} is refused; nothing of it is left.")
    return 0


def run_methods(settings: Settings, arguments: Namespace) -> int:
    """List every method that is emulated, as Markdown."""
    print(method_list(), end="")
    return 0


def method_list() -> str:
    """Every service with its methods, each in one line."""
    parts = [METHODS_HEAD.rstrip()]
    for service, methods in sorted(SERVICES.items()):
        parts += ["", f"## {service}", "", "| method | what it does here |", "|---|---|"]
        parts += [f"| `{name}` | {_first_line(method)} |" for name, method in sorted(methods.items())]
    return "\n".join(parts) + "\n"


def _first_line(method: Method) -> str:
    return (getattr(method, "func", method).__doc__ or "").strip().partition("\n")[0].replace("|", "\\|")


_ORDER = {"order": {"type": int, "help": "id of an order that waits; status shows them"}}
COMMANDS = {
    "invoice": Command(
        run_invoice,
        {
            "--json": {"action": "store_true", "help": "as one JSON document"},
            "--at": {"metavar": "ISO", "help": "a moment of the account's clock, not after now"},
        },
    ),
    "methods": Command(run_methods),
    "approve": Command(run_approve, _ORDER),
    "refuse": Command(run_refuse, _ORDER),
}
SOFTLAYER = Vendor(
    settings=Settings,
    folder="emulator",
    account=Account,
    routes=lambda account: SoftLayer(account).routes(),
    machine_source=GuestMachines,
    holdings=holdings,
    client_file=CONFIG_FILE,
    write_client_file=write_client_file,
    commands=COMMANDS,
)
