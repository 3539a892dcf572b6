"""The secondary disks of guests, as the API lists them."""

from __future__ import annotations

from emulator.softlayer.account import Account
from emulator.softlayer.objects import guests
from emulator.softlayer.views import View

BOOT_SWAP_METADATA = {"0", "1", "7"}


def portable_volumes(account: Account) -> list[View]:
    """Every secondary disk of a guest: a portable volume underneath, billed with its guest."""
    return [
        View(
            device.read("diskImage").local,
            {"blockDevices": lambda device=device: [device], "billingItem": lambda: None},
        )
        for record in account.store.guests.read_all()
        for device in guests.block_devices(account, record)
        if device.local["device"] not in BOOT_SWAP_METADATA
    ]
