"""The site with a queue as the emulator's commands see it."""

from starlette.applications import Starlette

from emulator import server
from emulator.pbs.access import CLIENT_FILE, write_client_file
from emulator.pbs.account import Account, Records
from emulator.pbs.settings import Settings
from emulator.pbs.site import Site
from emulator.pbs.status import holdings
from emulator.status import status_of
from emulator.vendor import Vendor


def open_account(settings: Settings) -> Account:
    """Open the account in its state folder."""
    return Account(settings, Records(settings.state))


def served(account: Account, port: int) -> Starlette:
    """The HTTP application of a site: its status alone, because people reach a queue over ssh."""
    return server.application(account, [], lambda: status_of(account, holdings, port=port))


PBS = Vendor(
    settings=Settings,
    folder="emulator-pbs",
    open_account=open_account,
    application=served,
    machine_source=Site,
    holdings=holdings,
    client_file=CLIENT_FILE,
    write_client_file=write_client_file,
    commands={},
    machines_end_with_server=True,
)
