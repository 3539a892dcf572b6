"""SoftLayer_Network_Storage: reading volumes and lending them to guests; they are cancelled through their billing items."""

from __future__ import annotations

from collections.abc import Callable

from .. import volumes as life
from ..account import Account
from ..calls import Call
from ..faults import invalid_value, public
from ..objects import volumes
from ..records import Volume
from ..templates import number
from ..views import Listing, View
from .finding import find, find_guest

GUEST_TYPE = "SoftLayer_Virtual_Guest"
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


def allow_hosts(account: Account, call: Call) -> list[View]:
    """Let guests attach a volume."""
    volume = find(account.store.volumes, call)
    life.allow(account, volume, _guest_ids(call))
    return volumes.volume(account, volume).read("allowedVirtualGuests")


def forbid_hosts(account: Account, call: Call) -> list[View]:
    """Take the permission back."""
    volume = find(account.store.volumes, call)
    life.forbid(account, volume, _guest_ids(call))
    return volumes.volume(account, volume).read("allowedVirtualGuests")


def allow_volumes(account: Account, call: Call) -> bool:
    """Let one guest attach several volumes."""
    guest = find_guest(account, call)
    for each in call.argument(0):
        life.allow(account, _named(account, each), [guest.id])
    return True


def forbid_volumes(account: Account, call: Call) -> bool:
    """Take the permission of one guest back."""
    guest = find_guest(account, call)
    for each in call.argument(0):
        life.forbid(account, _named(account, each), [guest.id])
    return True


def attached(account: Account, call: Call) -> list[View]:
    """The volumes of one type that a guest may attach."""
    guest, wanted = find_guest(account, call), call.argument(0, "ISCSI")
    return [
        volumes.volume(account, each)
        for each in account.store.volumes.look()
        if guest.id in each.allowed_guests and volumes.NAS_TYPES[each.kind] == wanted
    ]


def host_of_guest(account: Account, call: Call) -> View | None:
    """A guest as a storage host, once it may attach anything."""
    guest = find_guest(account, call)
    lent = any(guest.id in each.allowed_guests for each in account.store.volumes.look())
    return volumes.allowed_host(account, guest) if lent else None


def limits(account: Account, call: Call) -> list[dict[str, object]]:
    """How many volumes the account may have, and has."""
    counted = len(account.store.volumes)
    return [{"datacenterName": "global", "maximumAvailableCount": life.LIMIT, "provisionedCount": counted}]


def listing(root: str, *kinds: str) -> Callable[[Account, Call], Listing]:
    """The list of the account's volumes of these kinds."""

    def listed(account: Account, call: Call) -> Listing:
        every = sorted(account.store.volumes.look(), key=lambda each: each.id)
        return Listing([volumes.volume(account, each) for each in every if each.kind in kinds], root)

    listed.__doc__ = f"The account's {' and '.join(kinds)} volumes."
    return listed


def _guest_ids(call: Call) -> list[int]:
    hosts = call.argument(0)
    other = next((each for each in hosts if each.get("objectType") != GUEST_TYPE), None)
    if other:
        raise public(f"The emulator lends volumes to virtual guests only, not to {other.get('objectType')}.")
    return [number(each.get("id"), "id") for each in hosts]


def _named(account: Account, template: dict[str, object]) -> Volume:
    return find(account.store.volumes, Call("SoftLayer_Network_Storage", "getObject", identifier=str(template["id"])))


_VOLUME = {
    "getObject": get,
    "editObject": edit,
    "allowAccessFromHostList": allow_hosts,
    "removeAccessFromHostList": forbid_hosts,
    "getVolumeCountLimits": limits,
}
OF_ACCOUNT = {
    "getNetworkStorage": listing("networkStorage", "block", "file"),
    "getIscsiNetworkStorage": listing("iscsiNetworkStorage", "block"),
    "getNasNetworkStorage": listing("nasNetworkStorage", "file"),
}
OF_GUEST = {
    "allowAccessToNetworkStorageList": allow_volumes,
    "removeAccessToNetworkStorageList": forbid_volumes,
    "getAttachedNetworkStorages": attached,
    "getAllowedHost": host_of_guest,
}
SERVICES = {"SoftLayer_Network_Storage": _VOLUME, "SoftLayer_Network_Storage_Iscsi": _VOLUME}
