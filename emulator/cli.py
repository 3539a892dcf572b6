"""The emulator's command line: serve, start, stop, status, invoice, reset, publish."""

from __future__ import annotations

import argparse
import json
import logging
import shutil
import sys
from pathlib import Path
from typing import Any

from emulator import process
from emulator.machines import ContainerMachines, MachineError, Machines, NoMachines, publish
from emulator.process import ProcessError
from emulator.settings import LOOPBACK, SETTINGS_FILE, Settings, SettingsError, default_state, load_settings
from emulator.softlayer.account import Account
from emulator.softlayer.client_file import CONFIG_FILE, served_at, write_client_file
from emulator.softlayer.history import HISTORY_FILE, History
from emulator.softlayer.invoice_report import MomentError, readable, report
from emulator.softlayer.machine_reconciler import Crew
from emulator.softlayer.methods import method_list
from emulator.softlayer.middleware import Reception
from emulator.softlayer.networks import gateway
from emulator.softlayer.server import application, serve
from emulator.softlayer.status import Status, status_of
from emulator.softlayer.store import DATABASE_FILE, Store, StoreError
from emulator.tls import write_identity

DONE, FAILED, WRONG_USE, INTERRUPTED = 0, 1, 2, 130
OPTIONS = ("port", "machines", "clock_rate", "seed", "tls")


def main(argv: list[str]) -> int:
    """Run one command; failures are one sentence on standard error."""
    arguments = _parser().parse_args(argv)
    try:
        settings = load_settings(arguments.state, {name: getattr(arguments, name) for name in OPTIONS})
        return arguments.command(settings, arguments)
    except (SettingsError, MomentError) as wrong:
        print(wrong, file=sys.stderr)
        return WRONG_USE
    except (ProcessError, MachineError, StoreError) as failed:
        print(failed, file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        print("Interrupted; what was begun may still go on. See: python -m emulator status", file=sys.stderr)
        return INTERRUPTED


def run_serve(settings: Settings, arguments: argparse.Namespace) -> int:
    """Serve the account in the foreground until interrupted."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    with process.claim(settings):
        sockets = [process.listen(LOOPBACK, settings.port)]
        machines = machines_of(settings)
        machines.open()
        if settings.machines == "containers":
            sockets.append(process.listen(gateway(settings.private_subnets[0]), settings.port))
            machines.require_way_to(settings.port)
        identity = write_identity(settings.state) if settings.tls else None
        write_client_file(settings)
        account = Account(settings, Store(settings.state))
        account.store.flush()
        history = History(account, settings.state / HISTORY_FILE) if settings.history else None
        app = application(Reception(account, history), Status(account, settings.port))
        print(f"The account is at {settings.endpoint}; clients read {settings.state / CONFIG_FILE}.", flush=True)
        try:
            serve(app, sockets, Crew(account, machines) if account.waits_for_machines else None, identity)
        finally:
            machines.close()
            with account.lock:
                account.store.close()
            (settings.state / process.PID_FILE).unlink(missing_ok=True)
    return DONE


def run_start(settings: Settings, arguments: argparse.Namespace) -> int:
    """Start the server in the background."""
    pid = process.running_pid(settings)
    status = process.ask_status(settings) if pid else None
    at = served_at(settings)
    # Who does not ask for one of both ways takes the account as it is served.
    if status and status["port"] == settings.port and arguments.tls in (None, at.startswith("https")):
        print(f"The emulator is running already (process {pid}) at {at}.")
        return DONE
    if pid:
        where = f"at {at}, not at {settings.endpoint}" if status else "and does not answer"
        raise ProcessError(
            f"Starting the emulator: process {pid} serves {settings.state} already, {where}. "
            "Stop it first: python -m emulator stop."
        )
    process.listen(LOOPBACK, settings.port).close()
    process.start(settings, _same_options(settings, arguments))
    print(f"The emulator runs at {settings.endpoint}; clients read {settings.state / CONFIG_FILE}.")
    return DONE


def run_stop(settings: Settings, arguments: argparse.Namespace) -> int:
    """Stop the server; its machines and bills stay."""
    if not process.stop(settings):
        print("The emulator is not running.")
        return DONE
    left = len(_status_at_rest(settings)["machines"])
    print("The emulator is stopped" + (f"; its {left} machines go on running." if left else "."))
    return DONE


def run_status(settings: Settings, arguments: argparse.Namespace) -> int:
    """Show machines, open billing items, the bill and the clock."""
    status = process.ask_status(settings) if process.running_pid(settings) else None
    status = status or _status_at_rest(settings)
    print(json.dumps(status, indent=2) if arguments.json else _readable(status))
    return DONE


def run_invoice(settings: Settings, arguments: argparse.Namespace) -> int:
    """Show what the account has been charged up to now, or up to --at, line by line."""
    if not (settings.state / DATABASE_FILE).exists():
        raise ProcessError(f"There is no account in {settings.state}. Start one: python -m emulator start")
    invoice = report(Account(settings, Store(settings.state)), arguments.at)
    print(json.dumps(invoice, indent=2) if arguments.json else readable(invoice))
    return DONE


def run_approve(settings: Settings, arguments: argparse.Namespace) -> int:
    """Approve an order that waits for a person (setting approval = "pending")."""
    process.tell(settings, f"/orders/{arguments.order}/approve")
    print(f"Order {arguments.order} is approved; what it ordered is being built and billed.")
    return DONE


def run_refuse(settings: Settings, arguments: argparse.Namespace) -> int:
    """Refuse an order that waits for a person."""
    process.tell(settings, f"/orders/{arguments.order}/refuse")
    print(f"Order {arguments.order} is refused; nothing of it is left.")
    return DONE


def run_methods(settings: Settings, arguments: argparse.Namespace) -> int:
    """List every method that is emulated, as Markdown."""
    print(method_list(), end="")
    return DONE


def run_reset(settings: Settings, arguments: argparse.Namespace) -> int:
    """Stop the server and remove everything of the account; ``settings.toml`` is the user's and stays."""
    process.stop(settings)
    with process.claim(settings):
        machines_of(settings).reset()
        for path in settings.state.iterdir():
            if path.name != SETTINGS_FILE:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
    if not any(settings.state.iterdir()):
        settings.state.rmdir()
    print(f"Nothing is left of the account in {settings.state}.")
    return DONE


def run_publish(settings: Settings, arguments: argparse.Namespace) -> int:
    """Put a local image into the account's registry."""
    changed = publish(settings.state, arguments.image, arguments.name)
    print(f"{arguments.name} {'is published' if changed else 'was published already'} from {arguments.image}.")
    return DONE


def machines_of(settings: Settings) -> Machines:
    """What plays the guests of this account."""
    if settings.machines == "none":
        return NoMachines()
    return ContainerMachines(
        settings.account_name,
        settings.state,
        dict(enumerate(settings.private_subnets, 1)),
        settings.public_subnet,
        settings.registry_name,
        settings.registry_port,
    )


def _status_at_rest(settings: Settings) -> dict[str, Any]:
    if not (settings.state / DATABASE_FILE).exists():
        empty = {"machines": [], "open_billing_items": 0, "bill": "0.00", "currency": "USD", "clock": None}
        where = {"port": settings.port, "state": str(settings.state)}
        registry = f"{settings.registry_name}:{settings.registry_port}"
        return empty | where | {"running": False, "trouble": None, "registry": registry}
    account = Account(settings, Store(settings.state))
    return status_of(account, port=settings.port, running=False)


def _readable(status: dict[str, Any]) -> str:
    where = f"on port {status['port']}" if status["running"] else "not running; start it: python -m emulator start"
    lines = [f"emulator: {where}", f"clock: {status['clock'] or '-'}"]
    if status.get("trouble"):  # A server that an older version started does not tell it.
        lines.append(f"trouble: {status['trouble']}")
    for each in status["machines"]:
        lines.append(f"machine {each['guest_id']} {each['name']} ({each['flavor']}): {each['state']}")
        if each["error"]:
            lines.append(f"  {each['error']}")
    for order in status.get("waiting", []):
        lines.append(
            f"order {order['id']} ({', '.join(order['names'])}) waits: python -m emulator approve {order['id']}"
        )
    for title, counts in (("weather met", status.get("weather")), ("not emulated", status.get("not_emulated"))):
        if counts:
            lines.append(f"{title}: " + ", ".join(f"{name} {times}" for name, times in sorted(counts.items())))
    lines.append(f"open billing items: {status['open_billing_items']}")
    lines.append(f"bill so far: {status['bill']} {status['currency']}")
    return "\n".join(lines)


def _same_options(settings: Settings, arguments: argparse.Namespace) -> list[str]:
    given = {name: getattr(arguments, name) for name in OPTIONS if getattr(arguments, name) is not None}
    tls = given.pop("tls", None)
    words = [word for name, value in given.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    return ["--state", str(settings.state), *words, *([] if tls is None else ["--tls" if tls else "--no-tls"])]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m emulator", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    functions = {
        "serve": run_serve,
        "start": run_start,
        "stop": run_stop,
        "status": run_status,
        "invoice": run_invoice,
        "methods": run_methods,
        "approve": run_approve,
        "refuse": run_refuse,
        "reset": run_reset,
        "publish": run_publish,
    }
    for name, function in functions.items():
        command = commands.add_parser(name, help=function.__doc__.splitlines()[0])
        command.set_defaults(command=function)
        command.add_argument("--state", type=Path, default=default_state(), help="folder of the account")
        command.add_argument("--port", type=int, help="port on the loopback interface (8170)")
        command.add_argument("--machines", choices=("containers", "none"), help="what plays the guests")
        command.add_argument("--clock-rate", type=float, help="seconds of the account's clock per second (1)")
        command.add_argument("--tls", action=argparse.BooleanOptionalAction, help="serve over https (no)")
        command.add_argument("--seed", type=int, help="of everything that is drawn by chance (0)")
        if name in ("status", "invoice"):
            command.add_argument("--json", action="store_true", help="as one JSON document")
        if name == "invoice":
            command.add_argument("--at", metavar="ISO", help="a moment of the account's clock, not after now")
        if name in ("approve", "refuse"):
            command.add_argument("order", type=int, help="id of an order that waits; status shows them")
        if name == "publish":
            command.add_argument("image", help="image of this machine's Docker")
            command.add_argument("name", help="NAME[:TAG] in the registry")
    return parser
