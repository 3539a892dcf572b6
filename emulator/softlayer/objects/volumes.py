"""Volumes as the API shows them."""

from emulator.softlayer.account import Account
from emulator.softlayer.dates import iso
from emulator.softlayer.objects import bills, places
from emulator.softlayer.records import Volume
from emulator.softlayer.views import View


def volume(account: Account, record: Volume) -> View:
    """A block volume."""
    place = account.catalog.datacenter(record.datacenter)
    resource = View(
        {"id": place.id * 10 + 1, "name": f"Storage Type 02 Aggregate {place.name}"},
        {"datacenter": lambda: places.datacenter(place)},
    )
    return View(
        {
            "id": record.id,
            "accountId": account.id,
            "username": record.username,
            "capacityGb": record.capacity_gb,
            "createDate": iso(record.created),
            "nasType": "ISCSI",
            "notes": record.notes,
        },
        {
            "storageType": lambda: {"keyName": "ENDURANCE_BLOCK_STORAGE"},
            "serviceResource": lambda: resource,
            "billingItem": lambda: bills.of(account, account.store.billing_items[record.billing_item_id]),
        },
    )
