"""The SoftLayer account as the emulator's commands see it."""

from emulator.softlayer.account import Account
from emulator.softlayer.api import SoftLayer
from emulator.softlayer.client_file import CONFIG_FILE, write_client_file
from emulator.softlayer.commands import COMMANDS
from emulator.softlayer.guest_machines import GuestMachines
from emulator.softlayer.settings import Settings
from emulator.softlayer.status import holdings
from emulator.vendor import Vendor

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
