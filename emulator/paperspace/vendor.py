"""The Paperspace account as the emulator's commands see it."""

from starlette.applications import Starlette

from emulator.history import HISTORY_FILE, History
from emulator.paperspace.account import Account
from emulator.paperspace.events import events_of
from emulator.paperspace.http_api import application
from emulator.paperspace.key_file import KEY_FILE, write_key_file
from emulator.paperspace.machine_targets import MachineTargets
from emulator.paperspace.middleware import Middleware
from emulator.paperspace.records import Records
from emulator.paperspace.settings import Settings
from emulator.paperspace.status import holdings
from emulator.vendor import Vendor


def open_account(settings: Settings) -> Account:
    """Open the account in its state folder."""
    return Account(settings, Records(settings.state))


def served(account: Account, port: int) -> Starlette:
    """The HTTP application of an account, with a history if the settings ask for one."""
    settings = account.settings
    history = History(account, settings.state / HISTORY_FILE, events_of) if settings.history else None
    return application(Middleware(account, history), port)


PAPERSPACE = Vendor(
    settings=Settings,
    folder="emulator-paperspace",
    open_account=open_account,
    application=served,
    machine_source=MachineTargets,
    holdings=holdings,
    client_file=KEY_FILE,
    write_client_file=write_key_file,
    commands={},
)
