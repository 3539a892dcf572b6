"""The commands that only a SoftLayer account has: invoice, approve, refuse, methods."""

import json
from argparse import Namespace

from emulator import process
from emulator.process import ProcessError
from emulator.softlayer.account import Account
from emulator.softlayer.invoice_report import as_text, report
from emulator.softlayer.services import SERVICES, Method
from emulator.softlayer.settings import Settings
from emulator.store import DATABASE_FILE
from emulator.vendor import Command

METHODS_HEAD = """# What is emulated

Made by `python -m emulator methods`; a test holds it equal to the code. Every other method answers with the fault `-32601`,
which names it, and `python -m emulator status` counts it.
"""


def run_invoice(settings: Settings, arguments: Namespace) -> int:
    """Show what the account has been charged up to now, or up to --at, line by line."""
    if not (settings.state / DATABASE_FILE).exists():
        raise ProcessError(f"There is no account in {settings.state}. Start one: python -m emulator start")
    invoice = report(Account(settings), arguments.at)
    print(json.dumps(invoice, indent=2) if arguments.json else as_text(invoice))
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
    return (method.__doc__ or "").strip().partition("\n")[0].replace("|", "\\|")


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
