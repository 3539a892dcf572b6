"""The disks of guests as the API shows them."""

from typing import Any

from emulator.softlayer.account import Account
from emulator.softlayer.dates import iso
from emulator.softlayer.objects import guests
from emulator.softlayer.records import Guest
from emulator.softlayer.views import View

SWAP_GB, METADATA_MB = 2, 64
BOOT_SWAP_METADATA = {"0", "1", "7"}


def block_devices(account: Account, record: Guest) -> list[View]:
    """Every device: boot, swap, the extra disks and the metadata drive."""
    made = [
        (disk.block_device_id, disk.device, _image(record, disk.id, disk.device, disk.capacity_gb, "GB"))
        for disk in record.disks
    ]
    base = record.disks[0].block_device_id * 100
    made.append((base + 1, 1, _image(record, base + 1, 1, SWAP_GB, "GB")))
    made.append((base + 7, 7, _image(record, base + 7, 7, METADATA_MB, "MB")))
    return [
        View(
            {
                "id": number,
                "guestId": record.id,
                "device": str(device),
                "mountType": "Disk",
                "mountMode": "RW",
                "bootableFlag": int(device == 0),
                "createDate": iso(record.created),
                "diskImageId": image["id"],
            },
            {
                "diskImage": lambda image=image: View(image, {"type": lambda: _type(image)}),
                "guest": lambda: guests.guest(account, record),
            },
        )
        for number, device, image in sorted(made, key=lambda each: each[1])
    ]


def portable_volumes(account: Account) -> list[View]:
    """Every secondary disk of a guest: a portable volume underneath, billed with its guest."""
    return [
        View(
            device.read("diskImage").local,
            {"blockDevices": lambda device=device: [device], "billingItem": lambda: None},
        )
        for record in account.store.guests.read_all()
        for device in block_devices(account, record)
        if device.local["device"] not in BOOT_SWAP_METADATA
    ]


def _image(owner: Guest, number: int, device: int, capacity: int, units: str) -> dict[str, Any]:
    what = {1: "swap", 7: "metadata"}.get(device, f"disk {device}")
    text = f"{owner.name} {what}"
    return {"id": number, "capacity": capacity, "units": units, "name": text, "description": text, "uuid": owner.uuid}


def _type(image: dict[str, Any]) -> dict[str, str]:
    if image["units"] == "MB":
        return {"keyName": "METADATA", "name": "Metadata"}
    return (
        {"keyName": "SWAP", "name": "Swap"}
        if image["name"].endswith(" swap")
        else {"keyName": "SYSTEM", "name": "System"}
    )
