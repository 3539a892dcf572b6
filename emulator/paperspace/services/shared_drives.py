"""Shared drives: a share in a private network; every answer shows its password."""

from typing import Any

from emulator.paperspace import billing, views
from emulator.paperspace.account import Account
from emulator.paperspace.errors import refused
from emulator.paperspace.fields import NUMBER, Field
from emulator.paperspace.operations import Call, Operation, list_fields
from emulator.paperspace.records import Drive


def create(account: Account, call: Call) -> dict[str, Any]:
    """Create a drive; it answers at once, and its server comes up a little later."""
    given = call.input
    region, network = account.region(given["region"]), account.network(given["networkId"])
    if network.region != region:
        raise refused(f"Private network {network.ref} is in region {network.region}, not in {region}.")
    if given["size"] not in account.catalog.drives:
        sold = ", ".join(map(str, account.catalog.drives))
        raise refused(f"A drive of {given['size']:g} GB is not sold. Use one of {sold}.")
    size_gb = int(given["size"])
    drive = Drive(
        id=account.next_id(),
        ref=account.new_ref("sd"),
        name=given["name"],
        region=region,
        network_id=network.id,
        size_gb=size_gb,
        address=account.free_private_ip(network),
        username=account.new_ref("u"),
        password=account.new_password(),
        created=account.now,
    )
    account.store.drives[drive.id] = drive
    billing.open_for(account, billing.DRIVE, drive, account.catalog.drives[size_gb])
    return views.drive(account, drive)


def get(account: Account, call: Call) -> dict[str, Any]:
    """One drive."""
    return views.drive(account, account.drive(call.path["id"]))


def find(account: Account, call: Call) -> list[dict[str, Any]]:
    """The drives whose name contains a text, or in a region."""
    region = account.region(call.input["region"]) if "region" in call.input else None
    return [
        views.drive(account, each)
        for each in account.store.drives.values()
        if not each.deleting and call.input.get("name", "") in each.name and region in (None, each.region)
    ]


def update(account: Account, call: Call) -> dict[str, Any]:
    """Rename a drive; nothing else of it can change."""
    drive = account.drive(call.path["id"])
    drive.name = call.input.get("name", drive.name)
    return views.drive(account, drive)


def delete(account: Account, call: Call) -> dict[str, str]:
    """Delete a drive with everything on it, mounted or not."""
    drive = account.drive(call.path["id"])
    billing.close(account, drive.id)
    if account.settings.machines == "none":
        del account.store.drives[drive.id]
    else:
        drive.deleting = True
    return {"id": drive.ref}


_NEW = {
    "name": Field(required=True),
    "size": Field(NUMBER, required=True, positive=True),
    "region": Field(required=True),
    "networkId": Field(required=True),
}
_ORDER_BY = ("dtCreated", "name")
_LIST = list_fields(*_ORDER_BY, name=Field(), region=Field())
OPERATIONS = (
    Operation("sharedDrives-create", "POST", "/shared-drives", create, _NEW),
    Operation("sharedDrives-list", "GET", "/shared-drives", find, _LIST, _ORDER_BY),
    Operation("sharedDrives-get", "GET", "/shared-drives/{id}", get),
    Operation("sharedDrives-update", "PUT", "/shared-drives/{id}", update, {"name": Field()}),
    Operation("sharedDrives-delete", "DELETE", "/shared-drives/{id}", delete),
)
