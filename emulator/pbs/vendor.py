"""The site with a queue as the emulator's commands see it."""

from emulator.pbs.access import CLIENT_FILE, write_client_file
from emulator.pbs.account import Account
from emulator.pbs.settings import Settings
from emulator.pbs.site import Site
from emulator.pbs.status import holdings
from emulator.vendor import Vendor

PBS = Vendor(
    settings=Settings,
    folder="emulator-pbs",
    account=Account,
    routes=lambda account: [],  # people reach a queue over ssh
    machine_source=Site,
    holdings=holdings,
    client_file=CLIENT_FILE,
    write_client_file=write_client_file,
    commands={},
    machines_end_with_server=True,
)
