"""What the vendor offers as the API shows it: datacenters, routers, pods, flavors, images, operating systems."""

from emulator.softlayer.account import Account
from emulator.softlayer.catalog import Datacenter, Flavor, Image, Router, System
from emulator.softlayer.views import View

IMAGE_DATE = "2018-03-01T09:00:00-06:00"


def datacenter(place: Datacenter) -> View:
    """A datacenter."""
    return View({"id": place.id, "name": place.name, "longName": place.long_name, "statusId": 2})


def router(device: Router) -> View:
    """A router."""
    local = {
        "id": device.id,
        "hostname": device.hostname,
        "domain": "emulator.microcluster",
        "fullyQualifiedDomainName": f"{device.hostname}.emulator.microcluster",
    }
    return View(local, {"datacenter": lambda: datacenter(device.datacenter)})


def pod(account: Account, backend: Router) -> View:
    """A pod: the pair of routers with one number in one datacenter."""
    place = backend.datacenter
    frontend = next(
        each
        for each in account.catalog.routers
        if not each.private and (each.datacenter, each.pod) == (place, backend.pod)
    )
    return View(
        {
            "name": f"{place.name}.pod{backend.pod:02d}",
            "datacenterId": place.id,
            "datacenterName": place.name,
            "datacenterLongName": place.long_name,
            "backendRouterId": backend.id,
            "backendRouterName": backend.hostname,
            "frontendRouterId": frontend.id,
            "frontendRouterName": frontend.hostname,
            "capabilities": ["SUPPORTS_SECURITY_GROUP"],
        }
    )


def preset(account: Account, flavor: Flavor) -> View:
    """A flavor."""
    return View(
        {
            "id": flavor.id,
            "packageId": account.catalog.package_id,
            "keyName": flavor.key_name,
            "name": flavor.key_name,
            "description": flavor.description,
            "isActive": "1",
        }
    )


def image(account: Account, record: Image) -> View:
    """An image template group."""
    return View(
        {
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
    )


def installed(guest_id: int, passwords: list[dict[str, str]], system: System) -> View:
    """The operating system of a guest."""
    software = {
        "id": system.price.item_id,
        "referenceCode": system.codes[0],
        "manufacturer": system.manufacturer,
        "name": system.manufacturer,
        "version": system.version,
        "longDescription": system.price.description,
    }
    return View(
        {"id": guest_id * 10 + 1, "hardwareId": None, "manufacturerLicenseInstance": ""},
        {
            "passwords": lambda: passwords,
            "softwareLicense": lambda: {"id": system.price.item_id, "softwareDescription": software},
            "softwareDescription": lambda: software,
        },
    )
