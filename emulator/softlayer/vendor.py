"""The SoftLayer account as the emulator's commands see it."""

from starlette.applications import Starlette

from emulator.history import HISTORY_FILE, History
from emulator.softlayer.account import Account
from emulator.softlayer.client_file import CONFIG_FILE, write_client_file
from emulator.softlayer.commands import COMMANDS
from emulator.softlayer.events import events_of
from emulator.softlayer.guest_machines import GuestMachines
from emulator.softlayer.http_api import application
from emulator.softlayer.middleware import Middleware
from emulator.softlayer.records import Records
from emulator.softlayer.settings import Settings
from emulator.softlayer.status import holdings
from emulator.vendor import Vendor


def open_account(settings: Settings) -> Account:
    """Open the account in its state folder."""
    return Account(settings, Records(settings.state))


def served(account: Account, port: int) -> Starlette:
    """The HTTP application of an account, with a history if the settings ask for one."""
    settings = account.settings
    history = History(account, settings.state / HISTORY_FILE, events_of) if settings.history else None
    return application(Middleware(account, history), port)


SOFTLAYER = Vendor(
    settings=Settings,
    folder="emulator",
    open_account=open_account,
    application=served,
    machine_source=GuestMachines,
    holdings=holdings,
    client_file=CONFIG_FILE,
    write_client_file=write_client_file,
    commands=COMMANDS,
)
