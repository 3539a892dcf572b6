"""What is sold: packages, presets, images and locations."""

from typing import Any

from emulator.softlayer.account import Account
from emulator.softlayer.calls import Call
from emulator.softlayer.create_template import find_image
from emulator.softlayer.faults import not_found
from emulator.softlayer.objects import goods, places
from emulator.softlayer.services.finding import identifier
from emulator.softlayer.views import Listing, View

# The official client looks disk prices up in the old package 46, whatever package the guest came from.
OLD_PACKAGE_ID = 46


def get_packages(account: Account, call: Call) -> Listing:
    """Every package, which is the guests' own."""
    return Listing([goods.package(account)])


def get_package(account: Account, call: Call) -> View:
    """A package."""
    if identifier(call) not in (account.catalog.package_id, OLD_PACKAGE_ID):
        raise not_found(call.identifier)
    return goods.package(account)


def get_items(account: Account, call: Call) -> Listing:
    """The items of a package."""
    return Listing(get_package(account, call).read("items"), "items")


def get_item_prices(account: Account, call: Call) -> Listing:
    """The prices of a package."""
    return Listing(get_package(account, call).read("itemPrices"), "itemPrices")


def get_active_presets(account: Account, call: Call) -> Listing:
    """The flavors of a package."""
    return Listing(get_package(account, call).read("activePresets"), "activePresets")


def get_restricted_presets(account: Account, call: Call) -> Listing:
    """Flavors for this account alone: none."""
    get_package(account, call)
    return Listing([], "accountRestrictedActivePresets")


def get_regions(account: Account, call: Call) -> Listing:
    """Where a package is sold."""
    return Listing(get_package(account, call).read("regions"), "regions")


def get_configuration(account: Account, call: Call) -> Listing:
    """The categories of a package's prices; an order has to name those that no preset brings along."""
    get_package(account, call)
    brought = {price.category for flavor in account.catalog.flavors for price in flavor.prices}
    optional = {price.category for price in account.catalog.disks.values()}
    every = dict.fromkeys(price.category for price in account.catalog.prices.values())
    return Listing(
        [
            View(
                {
                    "id": each.id,
                    "itemCategoryId": each.id,
                    "isRequired": int(each not in brought | optional),
                    "sort": 0,
                },
                {"itemCategory": lambda each=each: goods.category(account, each.code)},
            )
            for each in every
        ],
        "configuration",
    )


def get_preset(account: Account, call: Call) -> View:
    """A flavor."""
    flavor = account.catalog.flavor(identifier(call))
    if flavor is None:
        raise not_found(call.identifier)
    return goods.preset(account, flavor)


def get_datacenters(account: Account, call: Call) -> Listing:
    """Every datacenter."""
    return Listing([places.datacenter(each) for each in account.catalog.datacenters])


def get_location(account: Account, call: Call) -> View:
    """A datacenter."""
    place = account.catalog.datacenter(identifier(call))
    if place is None:
        raise not_found(call.identifier)
    return places.datacenter(place)


def get_image(account: Account, call: Call) -> View:
    """An image template group, by id or GUID."""
    return goods.image(account, find_image(account, identifier(call)))


def get_public_images(account: Account, call: Call) -> Listing:
    """The images that everybody may order."""
    return Listing([goods.image(account, each) for each in account.catalog.images if not each.private])


def image_is_cloud_init(account: Account, call: Call) -> bool:
    """Whether guests of this image read their user data."""
    return find_image(account, identifier(call)).cloud_init


def image_boot_mode(account: Account, call: Call) -> str:
    """How guests of this image boot: HVM or PV."""
    return find_image(account, identifier(call)).virtualization


def image_locations(account: Account, call: Call) -> list[Any]:
    """Where an image is stored."""
    return get_image(account, call).read("datacenters")


_LOCATION = {"getDatacenters": get_datacenters, "getObject": get_location}

SERVICES = {
    "SoftLayer_Product_Package": {
        "getAllObjects": get_packages,
        "getObject": get_package,
        "getItems": get_items,
        "getItemPrices": get_item_prices,
        "getActivePresets": get_active_presets,
        "getAccountRestrictedActivePresets": get_restricted_presets,
        "getRegions": get_regions,
        "getConfiguration": get_configuration,
    },
    "SoftLayer_Product_Package_Preset": {"getObject": get_preset},
    "SoftLayer_Location": _LOCATION,
    "SoftLayer_Location_Datacenter": _LOCATION,
    "SoftLayer_Virtual_Guest_Block_Device_Template_Group": {
        "getObject": get_image,
        "getPublicImages": get_public_images,
        "isCloudInit": image_is_cloud_init,
        "getBootMode": image_boot_mode,
        "getStorageLocations": image_locations,
        "getDatacenters": image_locations,
    },
}
