"""The command line: serve, start, stop, status, reset, publish, and the vendor's own commands."""

import argparse
import json
import logging
import os
import shutil
import sys
from pathlib import Path
from typing import Any

from emulator.machines.certificates import write_identity
from emulator.machines.container_machines import ContainerMachines
from emulator.machines.networks import gateway
from emulator.machines.publishing import publish
from emulator.machines.spec import MachineError, Machines, NoMachines
from emulator.shared import process, status
from emulator.shared.machine_reconciler import MachineReconciler
from emulator.shared.package_index import PAGES, pip_configuration
from emulator.shared.process import ProcessError
from emulator.shared.server import application, serve
from emulator.shared.settings import LOOPBACK, SETTINGS_FILE, Settings, UsageError
from emulator.shared.store import DATABASE_FILE, StoreError
from emulator.shared.vendor import Command, Vendor
from emulator.vendors import DEFAULT, VENDORS, load_settings

DONE, FAILED, WRONG_USE, INTERRUPTED = 0, 1, 2, 130
OPTIONS = ("port", "machines", "clock_rate", "seed", "tls")


def main(argv: list[str]) -> int:
    """Run one command; failures are one sentence on standard error."""
    arguments = _parser().parse_args(argv)
    try:
        arguments.words = argv[1:]
        overrides = {name: getattr(arguments, name) for name in OPTIONS}
        return arguments.run(load_settings(arguments.state, overrides, arguments.vendor), arguments)
    except UsageError as wrong:
        print(wrong, file=sys.stderr)
        return WRONG_USE
    except (ProcessError, MachineError, StoreError) as failed:
        print(failed, file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        print("Interrupted; the command may not be complete. See: python -m emulator status", file=sys.stderr)
        return INTERRUPTED


def run_serve(settings: Settings, arguments: argparse.Namespace) -> int:
    """Serve the account in the foreground until interrupted."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    vendor = _vendor(arguments)
    os.umask(0o077)  # For the database, the history, and whatever else is written from now on.
    with process.claim(settings):
        sockets = [process.listen(LOOPBACK, settings.port)]
        machines = machines_of(settings)
        machines.open()
        if settings.machines == "containers":
            sockets.append(process.listen(gateway(settings.private_subnets[0]), settings.port))
            machines.require_way_to(settings.port)
        identity = write_identity(settings.state) if settings.tls else None
        process.write_address(settings)
        client_file = vendor.write_client_file(settings)
        account = vendor.account(settings)
        account.store.flush()
        follows = account.waits_for_machines
        reconciler = MachineReconciler(account, vendor.machine_source(account), machines) if follows else None
        print(f"The account is at {settings.address}; clients read {client_file}.", flush=True)
        try:
            app = application(account, vendor.routes(account), vendor.holdings, settings.port)
            serve(app, sockets, reconciler, identity)
        finally:
            machines.close()
            for each in machines.alive() if vendor.machines_end_with_server else ():
                machines.power_off(each)
            with account.lock:
                account.store.close()
            (settings.state / process.PID_FILE).unlink(missing_ok=True)
    return DONE


def run_start(settings: Settings, arguments: argparse.Namespace) -> int:
    """Start the server in the background."""
    pid = process.running_pid(settings)
    running = process.ask_status(settings) if pid else None
    address = process.address_of(settings)
    # Without --tls or --no-tls, either way of serving is fine.
    if running and running["port"] == settings.port and arguments.tls in (None, address.startswith("https")):
        print(f"The emulator is running already (process {pid}) at {address}.")
        return DONE
    if pid:
        where = f"at {address}, not at {settings.address}" if running else "and does not answer"
        raise ProcessError(
            f"Starting the emulator: process {pid} serves {settings.state} already, {where}. "
            f"Stop it first: {settings.COMMAND.format('stop')}."
        )
    process.listen(LOOPBACK, settings.port).close()
    # A client that asked while somebody else had the port has told them the old key: the server makes another.
    (settings.state / settings.KEY_FILE).unlink(missing_ok=True)
    # The server gets the same words; of two folders the last one counts, and that is an absolute path.
    process.start(settings, [*arguments.words, "--state", str(settings.state)])
    client_file = settings.state / _vendor(arguments).client_file
    print(f"The emulator runs at {settings.address}; clients read {client_file}.")
    return DONE


def run_stop(settings: Settings, arguments: argparse.Namespace) -> int:
    """Stop the server; its machines and bills stay."""
    if not process.stop(settings):
        print("The emulator is not running.")
        return DONE
    left = len(_status(settings, arguments)["machines"])
    print("The emulator is stopped" + (f"; its {left} machines keep running." if left else "."))
    return DONE


def run_status(settings: Settings, arguments: argparse.Namespace) -> int:
    """Show machines, open billing items, the bill and the clock."""
    found = _status(settings, arguments)
    # A server that runs has its registry's port; before the first start somebody else may have it.
    asks = settings.registry_name and not found["running"]
    found["registry_port_owner"] = process.port_owner(settings.registry_port, everywhere=True) if asks else None
    print(json.dumps(found, indent=2) if arguments.json else status.as_text(found))
    return DONE


def run_reset(settings: Settings, arguments: argparse.Namespace) -> int:
    """Stop the server and remove everything of the account except the user's settings.toml."""
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
    changed = publish(settings.state, arguments.image, arguments.name, arguments.cache)
    print(f"{arguments.name} {'is published' if changed else 'was published already'} from {arguments.image}.")
    return DONE


def machines_of(settings: Settings) -> Machines:
    """The machines behind what is rented in this account."""
    if settings.machines == "none":
        return NoMachines()
    scheme = "https" if settings.tls else "http"
    return ContainerMachines(
        settings.account_name,
        settings.state,
        dict(enumerate(settings.private_subnets, 1)),
        settings.public_subnet,
        settings.registry_name,
        settings.registry_port,
        settings.IMAGES,
        pip_configuration(f"{scheme}://{gateway(settings.private_subnets[0])}:{settings.port}{PAGES}"),
    )


def _vendor(arguments: argparse.Namespace) -> Vendor:
    return VENDORS[arguments.vendor]


def _status(settings: Settings, arguments: argparse.Namespace) -> dict[str, Any]:
    """The status that a running server reports, or else what the database says."""
    running = process.ask_status(settings) if process.running_pid(settings) else None
    if running:
        return running
    if not (settings.state / DATABASE_FILE).exists():
        return status.status_without_account(settings)
    vendor = _vendor(arguments)
    return status.status_of(vendor.account(settings), vendor.holdings, port=settings.port, running=False)


_JSON = {"--json": {"action": "store_true", "help": "as one JSON document"}}
_IMAGE = {
    "image": {"help": "image of this computer's Docker"},
    "name": {"help": "NAME[:TAG] in the registry"},
    "--cache": {"type": Path, "help": "folder for what Docker saved of its images, which accounts may share"},
}
COMMANDS = {
    "serve": Command(run_serve),
    "start": Command(run_start),
    "stop": Command(run_stop),
    "status": Command(run_status, _JSON),
    "reset": Command(run_reset),
    "publish": Command(run_publish, _IMAGE),
}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m emulator", description=__doc__)
    words = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, command in COMMANDS.items():
        added = _add(words, name, command)
        added.add_argument("vendor", nargs="?", choices=sorted(VENDORS), default=DEFAULT, help=f"({DEFAULT})")
    for name, vendor in VENDORS.items():
        for word, command in vendor.commands.items():
            _add(words, word, command).set_defaults(vendor=name)
    return parser


def _add(words: Any, name: str, command: Command) -> argparse.ArgumentParser:
    added = words.add_parser(name, help=command.run.__doc__.splitlines()[0])
    added.set_defaults(run=command.run)
    added.add_argument("--state", type=Path, help="folder of the account")
    added.add_argument(
        "--port", type=int, help="port on the loopback interface (softlayer 8170, paperspace 8180, queue 8190)"
    )
    added.add_argument("--machines", choices=("containers", "none"), help="what runs behind what is rented")
    added.add_argument("--clock-rate", type=float, help="seconds of the account's clock per second (1)")
    added.add_argument("--tls", action=argparse.BooleanOptionalAction, help="serve over https (no)")
    added.add_argument("--seed", type=int, help="of everything that is drawn at random (0)")
    for argument, options in command.arguments.items():
        added.add_argument(argument, **options)
    return added
