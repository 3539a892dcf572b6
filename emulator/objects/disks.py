"""Portable volumes as the API shows them: those ordered on their own, and the secondary disks of guests."""

from __future__ import annotations

from .. import portable_disks as life
from ..account import Account
from ..clock import iso
from ..records import PortableDisk
from ..views import View
from . import bills, guests

BOOT_SWAP_METADATA = {"0", "1", "7"}


def portable_volumes(account: Account) -> list[View]:
    """Every portable volume; a secondary disk of a guest is one underneath, billed with its guest."""
    own = [disk(account, each) for each in account.store.portable_disks.look()]
    secondary = [
        View(
            device.read("diskImage").local,
            {"blockDevices": lambda device=device: [device], "billingItem": lambda: None},
        )
        for record in account.store.guests.look()
        for device in guests.block_devices(account, record)
        if device.local["device"] not in BOOT_SWAP_METADATA
        and device.local["diskImageId"] not in account.store.portable_disks
    ]
    return own + secondary


def disk(account: Account, record: PortableDisk) -> View:
    """A portable volume that was ordered on its own."""
    guest = life.holder(account, record)
    repository = View(
        {"id": 77, "name": record.datacenter}, {"guests": lambda: [guests.guest(account, guest)] if guest else []}
    )
    return View(
        {
            "id": record.id,
            "capacity": record.capacity_gb,
            "units": "GB",
            "name": record.description,
            "description": record.description,
            "uuid": record.uuid,
            "storageRepositoryId": 77,
            "typeId": 241,
            "createDate": iso(record.created),
        },
        {
            "billingItem": lambda: bills.of(account, account.store.billing_items[record.billing_item_id]),
            "blockDevices": lambda: [
                each
                for each in (guests.block_devices(account, guest) if guest else [])
                if each.local["diskImageId"] == record.id
            ],
            "storageRepository": lambda: repository,
        },
    )
