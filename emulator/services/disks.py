"""SoftLayer_Virtual_Disk_Image and the two calls of a guest that move a portable volume; both restart the guest."""

from __future__ import annotations

from .. import guests, portable_disks, transactions
from ..account import Account
from ..calls import Call
from ..faults import not_found, public
from ..objects import disks
from ..objects.guests import transaction
from ..records import Guest, PortableDisk
from ..templates import number
from ..views import View
from .finding import find, find_guest


def get(account: Account, call: Call) -> View:
    """A portable volume that was ordered on its own."""
    return disks.disk(account, find(account.store.portable_disks, call))


def attach(account: Account, call: Call) -> View:
    """Attach a portable volume to a guest."""
    guest, disk = _both(account, call)
    portable_disks.attach(account, disk, guest)
    return _restarted(account, guest)


def detach(account: Account, call: Call) -> View:
    """Detach a portable volume from a guest."""
    guest, disk = _both(account, call)
    portable_disks.detach(account, disk, guest)
    return _restarted(account, guest)


def _both(account: Account, call: Call) -> tuple[Guest, PortableDisk]:
    guest = find_guest(account, call)
    if guest.transaction or guest.cancelled is not None:
        raise public(f"Virtual guest {guest.id} is cancelled or has an active transaction.")
    wanted = number(call.argument(0), "imageId")
    if any(disk.id == wanted for disk in guest.disks):
        raise public(f"Disk image {wanted} is billed with virtual guest {guest.id} and cannot leave it.")
    disk = account.store.portable_disks.get(wanted)
    if disk is None:
        raise not_found(wanted)
    return guest, disk


def _restarted(account: Account, guest: Guest) -> View:
    guests.restart(guest)
    work = transactions.begin(account, guest, transactions.DISK_CHANGE, account.settings.upgrade_s)
    return transaction(account, guest, work)


OF_GUEST = {"attachDiskImage": attach, "detachDiskImage": detach}
SERVICES = {"SoftLayer_Virtual_Disk_Image": {"getObject": get}}
