"""What is sold as the API shows it: packages, presets, items, prices, images, operating systems."""

from typing import Any

from emulator.softlayer.account import Account
from emulator.softlayer.catalog import Flavor, Image, Price, System
from emulator.softlayer.objects import places
from emulator.softlayer.order_container import write_price
from emulator.softlayer.records import Guest
from emulator.softlayer.views import View

IMAGE_DATE = "2018-03-01T09:00:00-06:00"


def package(account: Account) -> View:
    """The one package that is sold."""
    catalog = account.catalog
    local = {
        "id": catalog.package_id,
        "keyName": catalog.package_key,
        "name": catalog.package_name,
        "isActive": 1,
        "unitSize": 1,
    }
    return View(
        local,
        {
            "type": lambda: {"keyName": "VIRTUAL_SERVER_INSTANCE"},
            "categories": lambda: [category(account, "guest_core")],
            "items": lambda: items(account),
            "itemPrices": lambda: prices(account),
            "activePresets": lambda: [preset(account, each) for each in catalog.flavors],
            "regions": lambda: [places.region(each) for each in sold_in(account)],
        },
    )


def sold_in(account: Account) -> list[Any]:
    """The datacenters that sell any flavor."""
    every = {name for flavor in account.catalog.flavors for name in flavor.sold_in}
    return [each for each in account.catalog.datacenters if each.name in every]


def category(account: Account, code: str) -> dict[str, Any]:
    """A billing category."""
    found = account.catalog.categories[code]
    return {"id": found.id, "categoryCode": found.code, "name": found.name}


def preset(account: Account, flavor: Flavor) -> View:
    """A flavor with the prices it is made of and the places that sell it."""
    fees = {"totalMinimumHourlyFee": float(flavor.hourly)}
    return View(
        {
            "id": flavor.id,
            "packageId": account.catalog.package_id,
            "keyName": flavor.key_name,
            "name": flavor.key_name,
            "description": flavor.description,
            "isActive": "1",
        },
        {
            "prices": lambda: [price(account, each) for each in flavor.prices],
            "configuration": lambda: [
                {"category": category(account, each.category.code), "price": price(account, each)}
                for each in flavor.prices
            ],
            "locations": lambda: [
                places.datacenter(each) for each in account.catalog.datacenters if each.name in flavor.sold_in
            ],
            "totalMinimumHourlyFee": lambda: fees["totalMinimumHourlyFee"],
            "computeGroup": lambda: None,
        },
    )


def price(account: Account, record: Price) -> View:
    """A price; all are standard prices, so none names a location group."""
    written = write_price(account, record)
    local = {key: value for key, value in written.items() if key not in {"categories", "item"}}
    local |= {"itemId": record.item_id, "locationGroupId": None, "sort": 0}
    return View(
        local,
        _absent(local, *(f"capacityRestriction{name}" for name in ("Type", "Minimum", "Maximum")))
        | {
            "categories": lambda: written["categories"],
            "item": lambda: _item(account, record.item_id, [record]),
        },
    )


def prices(account: Account) -> list[View]:
    """Every price, in the order of the ids."""
    return [price(account, each) for _, each in sorted(account.catalog.prices.items())]


def items(account: Account) -> list[View]:
    """Every item with its prices: a disk size has one price per position."""
    by_item: dict[int, list[Price]] = {}
    for each in sorted(account.catalog.prices.values(), key=lambda price: price.id):
        by_item.setdefault(each.item_id, []).append(each)
    return [_item(account, number, each) for number, each in by_item.items()]


def image(account: Account, record: Image) -> View:
    """An image template group."""
    local = {
        "id": record.id,
        "globalIdentifier": record.guid,
        "name": record.name,
        "note": record.note,
        "accountId": account.id if record.private else 1,
        "parentId": None,
        "publicFlag": 0 if record.private else 1,
        "createDate": IMAGE_DATE,
        "statusId": 1,
    }
    size = record.boot_gb * 2**30
    disk = {
        "id": record.id + 1,
        "capacity": record.boot_gb,
        "name": record.name,
        "units": "GB",
        "softwareReferences": [],
    }
    child = {
        "id": record.id + 2,
        "blockDevicesDiskSpaceTotal": size,
        "blockDevices": [{"id": record.id + 3, "diskSpace": size, "diskImage": disk}],
    }
    return View(
        local,
        {
            "imageType": lambda: {"keyName": "SYSTEM", "name": "System"},
            "flexImageFlag": lambda: False,
            "children": lambda: [child],
            "firstChild": lambda: child,
            "status": lambda: {"name": "Active", "keyName": "ACTIVE"},
            "accountReferences": list,
            "datacenters": lambda: [places.datacenter(each) for each in sold_in(account)],
        },
    )


def installed(owner: Guest, system: System) -> View:
    """The operating system of a guest; passwords come once the guest is built."""
    secret = {"username": "root", "password": owner.password, "notes": ""}
    licence = {"id": system.price.item_id, "softwareDescription": _software(system)}
    return View(
        {"id": owner.id * 10 + 1, "hardwareId": None, "manufacturerLicenseInstance": ""},
        {
            "passwords": lambda: [secret] if owner.provisioned else [],
            "softwareLicense": lambda: licence,
            "softwareDescription": lambda: _software(system),
        },
    )


def _item(account: Account, number: int, of: list[Price]) -> View:
    first = of[0]
    system = next((each for each in account.catalog.systems if each.price.item_id == number), None)
    shown = {"id": first.category.id, "categoryCode": first.category.code, "name": first.category.name}
    local = {
        "id": number,
        "keyName": first.key_name,
        "description": first.description,
        "capacity": "0" if first.capacity is None else str(first.capacity),
        "units": first.units or "N/A",
        "softwareDescriptionId": number if system else None,
        # The official client reads it without asking for it, so the real service shows it always.
        "itemCategory": shown,
    }
    return View(
        local,
        {
            "capacityMinimum": lambda: None,
            "capacityMaximum": lambda: None,
            "prices": lambda: [price(account, each) for each in of],
            "categories": lambda: [shown],
            "attributes": list,
            "softwareDescription": lambda: _software(system) if system else None,
        },
    )


def _absent(local: dict[str, Any], *names: str) -> dict[str, Any]:
    """Properties that every such object knows and this one does not have: asking for them is no mistake."""
    return {name: lambda: None for name in names if name not in local}


def _software(system: System) -> dict[str, Any]:
    return {
        "id": system.price.item_id,
        "referenceCode": system.codes[0],
        "manufacturer": system.manufacturer,
        "name": system.manufacturer,
        "version": system.version,
        "longDescription": system.price.description,
    }
