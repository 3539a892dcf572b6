"""SoftLayer_Network_Storage: volumes and their notes; billing items cancel them."""

from emulator.softlayer.account import Account
from emulator.softlayer.calls import Call
from emulator.softlayer.objects import volumes
from emulator.softlayer.services.finding import changes_of, find
from emulator.softlayer.views import Listing, View


def get(account: Account, call: Call) -> View:
    """A volume."""
    return volumes.volume(account, find(account.store.volumes, call))


def edit(account: Account, call: Call) -> bool:
    """Change the notes."""
    changes = changes_of(call, "notes")
    find(account.store.volumes, call).notes = str(changes.get("notes") or "")
    return True


def every(account: Account, call: Call) -> Listing:
    """The account's volumes; the disks of guests are none."""
    return Listing(
        [volumes.volume(account, each) for _, each in sorted(account.store.volumes.items())], "networkStorage"
    )


_VOLUME = {"getObject": get, "editObject": edit}
OF_ACCOUNT = {"getNetworkStorage": every}
SERVICES = {"SoftLayer_Network_Storage": _VOLUME, "SoftLayer_Network_Storage_Iscsi": _VOLUME}
