"""SoftLayer_Network_Storage: reading volumes and their notes; they are cancelled through their billing items."""

from __future__ import annotations

from emulator.softlayer.account import Account
from emulator.softlayer.calls import Call
from emulator.softlayer.faults import invalid_value
from emulator.softlayer.objects import volumes
from emulator.softlayer.services.finding import find
from emulator.softlayer.views import Listing, View

NOTES_LENGTH = 1000


def get(account: Account, call: Call) -> View:
    """A volume."""
    return volumes.volume(account, find(account.store.volumes, call))


def edit(account: Account, call: Call) -> bool:
    """Change the notes."""
    changes = call.argument(0)
    unknown = set(changes) - {"notes"}
    if unknown:
        raise invalid_value(sorted(unknown)[0], "It cannot be edited.")
    notes = str(changes.get("notes") or "")
    if len(notes) > NOTES_LENGTH:
        raise invalid_value("notes", f"It may have {NOTES_LENGTH} characters.")
    find(account.store.volumes, call).notes = notes
    return True


def every(account: Account, call: Call) -> Listing:
    """The account's volumes; the disks of guests are none."""
    return Listing(
        [volumes.volume(account, each) for _, each in sorted(account.store.volumes.items())], "networkStorage"
    )


_VOLUME = {"getObject": get, "editObject": edit}
OF_ACCOUNT = {"getNetworkStorage": every}
SERVICES = {"SoftLayer_Network_Storage": _VOLUME, "SoftLayer_Network_Storage_Iscsi": _VOLUME}
