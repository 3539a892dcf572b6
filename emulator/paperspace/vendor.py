"""The Paperspace account as the emulator's commands see it."""

from emulator.paperspace.account import Account
from emulator.paperspace.api import Paperspace
from emulator.paperspace.key_file import KEY_FILE, write_key_file
from emulator.paperspace.machine_targets import MachineTargets
from emulator.paperspace.settings import Settings
from emulator.paperspace.status import holdings
from emulator.vendor import Vendor

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
