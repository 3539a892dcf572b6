"""SoftLayer_Virtual_Guest: ordering, reading, changing and cancelling guests."""

from __future__ import annotations

from typing import Any

from .. import guests as life
from .. import transactions
from ..account import Account
from ..calls import Call
from ..containers import write_container
from ..faults import INVALID_PARAMETERS, Fault, invalid_value, public
from ..objects import bills, goods, guests
from ..records import Guest
from ..templates import number, read_name, read_template
from ..upgrades import upgrade_prices
from ..views import MISSING, Listing, View
from .finding import find_guest

NOTES_LENGTH = 1000
EDITABLE = {"hostname", "domain", "notes"}
SPEEDS = (0, 10, 100, 1000)


def create(account: Account, call: Call) -> View:
    """Order one guest."""
    _, made = life.place(account, [read_template(account, call.argument(0))])
    return guests.created(account, made[0])


def create_many(account: Account, call: Call) -> list[View]:
    """Order several guests, all or none."""
    _, made = life.place(account, [read_template(account, each) for each in call.argument(0)])
    return [guests.created(account, each) for each in made]


def generate_order_template(account: Account, call: Call) -> dict[str, Any]:
    """The order container for a create template; nothing is ordered."""
    return write_container(account, read_template(account, call.argument(0)))


def get(account: Account, call: Call) -> View:
    """A guest."""
    return guests.guest(account, find_guest(account, call))


def edit(account: Account, call: Call) -> bool:
    """Change hostname, domain or notes; the machine itself is not touched."""
    guest, changes = find_guest(account, call), call.argument(0)
    unknown = set(changes) - EDITABLE
    if unknown:
        raise invalid_value(sorted(unknown)[0], "It cannot be edited.")
    if len(str(changes.get("notes") or "")) > NOTES_LENGTH:
        raise invalid_value("notes", f"It may have {NOTES_LENGTH} characters.")
    hostname, domain = read_name({"hostname": guest.hostname, "domain": guest.domain} | changes)
    guest.hostname, guest.domain, guest.modified = hostname, domain, account.now
    guest.notes = guest.notes if changes.get("notes") is None else str(changes["notes"])
    item = account.store.billing_items[guest.billing_item_id]
    item.hostname, item.domain = hostname, domain
    return True


def delete(account: Account, call: Call) -> bool:
    """Cancel a guest at once."""
    life.cancel(account, find_guest(account, call))
    return True


def set_tags(account: Account, call: Call) -> bool:
    """Replace all tags of a guest."""
    find_guest(account, call).tags = [tag.strip() for tag in str(call.argument(0)).split(",") if tag.strip()]
    return True


def set_user_metadata(account: Account, call: Call) -> list[View]:
    """Replace the user data; the machine sees it after its next boot."""
    values = call.argument(0)
    guest = find_guest(account, call)
    guest.user_data = str(values[0]) if values else ""
    return guests.guest(account, guest).read("userData")


def set_public_speed(account: Account, call: Call) -> bool:
    """Set the speed of the public interface; 0 disables it."""
    guest = find_guest(account, call)
    if guest.public is None:
        raise public(f"Virtual guest {guest.id} has no public interface.")
    guest.public.max_speed = _speed(call)
    return True


def set_private_speed(account: Account, call: Call) -> bool:
    """Set the speed of the private interface; 0 disables it."""
    find_guest(account, call).private.max_speed = _speed(call)
    return True


def power_on(account: Account, call: Call) -> bool:
    """Start the machine."""
    _manageable(account, call).powered = True
    return True


def power_off(account: Account, call: Call) -> bool:
    """Stop the machine; its charge goes on."""
    _manageable(account, call).powered = False
    return True


def reboot(account: Account, call: Call) -> bool:
    """Stop and start the machine."""
    life.restart(_manageable(account, call))
    return True


def reload(account: Account, call: Call) -> str:
    """Reload the operating system: a transaction with a restart; the emulated disks keep their content."""
    if call.argument(0, "") != "FORCE":
        raise Fault(INVALID_PARAMETERS, "reloadOperatingSystem is only emulated with the token 'FORCE'.")
    guest = _manageable(account, call)
    life.restart(guest)
    work = transactions.begin(account, guest, transactions.RELOAD, account.settings.upgrade_s)
    guest.reload_transaction_id = work.id
    return "1"


def get_upgrade_item_prices(account: Account, call: Call) -> Listing:
    """The prices a guest may be upgraded to."""
    guest = find_guest(account, call)
    return Listing([goods.price(account, each) for each in upgrade_prices(account, guest)], "upgradeItemPrices")


def get_billing_item(account: Account, call: Call) -> View | None:
    """What a guest costs; nothing once it is cancelled."""
    return bills.of_guest(account, find_guest(account, call))


def get_billing_total(account: Account, call: Call) -> float | None:
    """The dollars of a guest up to now."""
    item = bills.of_guest(account, find_guest(account, call))
    return item.local["currentHourlyCharge"] if item else None


def get_create_options(account: Account, call: Call) -> dict[str, Any]:
    """The older view of everything that can be put into a create template."""
    catalogue = account.catalogue
    flavours = [
        {
            "flavor": goods.preset(account, each),
            "template": {"id": "", "supplementalCreateObjectOptions": {"flavorKeyName": each.key_name}},
        }
        for each in catalogue.flavours
    ]
    systems = [
        {
            "itemPrice": goods.price(account, each.price),
            "template": {"operatingSystemReferenceCode": code},
        }
        for each in catalogue.systems
        for code in each.codes
    ]
    disks = [
        {
            "itemPrice": goods.price(account, price),
            "template": {
                "blockDevices": [{"device": str(position), "diskImage": {"capacity": price.capacity}}],
                "localDiskFlag": False,
            },
        }
        for position in range(2, 6)
        for price in catalogue.disks.values()
        if price.category.code == f"guest_disk{position - 1}"
    ]
    speeds = [
        {
            "itemPrice": goods.price(account, price),
            "template": {"networkComponents": [{"maxSpeed": price.capacity}], "privateNetworkOnlyFlag": private},
        }
        for (_, private), price in catalogue.port_speeds.items()
    ]
    return {
        "flavors": flavours,
        "operatingSystems": systems,
        "blockDevices": disks,
        "networkComponents": speeds,
        "datacenters": [{"template": {"datacenter": {"name": each.name}}} for each in goods.sold_in(account)],
        "processors": [],
        "memory": [],
    }


def validate_image(account: Account, call: Call) -> bool:
    """Whether an image may be loaded onto a guest."""
    image = account.catalogue.image(call.argument(0))
    return image is not None and image.virtualization == "HVM"


def first_free_device(account: Account, call: Call) -> str:
    """The device number that the next disk gets."""
    used = {disk.device for disk in find_guest(account, call).disks} | {1}
    return str(min(set(range(6)) - used, default=-1))


def property_of(name: str, empty: Any = None) -> Any:
    """The getter of one property, as every object has one."""

    def getter(account: Account, call: Call) -> Any:
        value = get(account, call).read(name)
        return empty if value is MISSING else value

    return getter


def answer(value: Any) -> Any:
    """An answer that is the same for every guest."""

    def getter(account: Account, call: Call) -> Any:
        find_guest(account, call)
        return value

    return getter


def search(account: Account, call: Call) -> Listing:
    """SoftLayer_Search::advancedSearch for guests; only the object type is looked at."""
    text = call.argument(0)
    if "SoftLayer_Virtual_Guest" not in text:
        raise public(f"The emulator searches SoftLayer_Virtual_Guest alone, not '{text}'.")
    every = sorted(account.store.guests.items())
    return Listing(
        [
            View(
                {"resourceType": "SoftLayer_Virtual_Guest"},
                {"resource": lambda guest=guest: guests.guest(account, guest)},
            )
            for _, guest in every
        ]
    )


def _manageable(account: Account, call: Call) -> Guest:
    guest = find_guest(account, call)
    if guest.transaction:
        raise public(f"Virtual guest {guest.id} has active transaction {guest.transaction.id}.")
    return guest


def _speed(call: Call) -> int:
    speed = number(call.argument(0), "speed")
    if speed not in SPEEDS:
        raise invalid_value("speed", f"{speed} is not one of 0, 10, 100, 1000.")
    return speed


SERVICES = {
    "SoftLayer_Search": {"advancedSearch": search},
    "SoftLayer_Virtual_Guest": {
        "createObject": create,
        "createObjects": create_many,
        "generateOrderTemplate": generate_order_template,
        "getObject": get,
        "editObject": edit,
        "deleteObject": delete,
        "setTags": set_tags,
        "setUserMetadata": set_user_metadata,
        "setPublicNetworkInterfaceSpeed": set_public_speed,
        "setPrivateNetworkInterfaceSpeed": set_private_speed,
        "powerOn": power_on,
        "powerOff": power_off,
        "powerOffSoft": power_off,
        "rebootDefault": reboot,
        "rebootSoft": reboot,
        "rebootHard": reboot,
        "reloadOperatingSystem": reload,
        "getUpgradeItemPrices": get_upgrade_item_prices,
        "getUpgradeRequest": property_of("upgradeRequest"),
        "getBillingItem": get_billing_item,
        "getCurrentBillingTotal": get_billing_total,
        "getCreateObjectOptions": get_create_options,
        "getBlockDevices": property_of("blockDevices"),
        "getActiveTransaction": property_of("activeTransaction"),
        "getActiveTransactions": property_of("activeTransactions"),
        "getLastTransaction": property_of("lastTransaction"),
        "getNetworkComponents": property_of("networkComponents"),
        "getPrimaryNetworkComponent": property_of("primaryNetworkComponent"),
        "getPrimaryBackendNetworkComponent": property_of("primaryBackendNetworkComponent"),
        "getPrimaryIpAddress": property_of("primaryIpAddress"),
        "getPrimaryBackendIpAddress": property_of("primaryBackendIpAddress"),
        "getPowerState": property_of("powerState"),
        "getStatus": property_of("status"),
        "getDatacenter": property_of("datacenter"),
        "getOperatingSystem": property_of("operatingSystem"),
        "getUserData": property_of("userData"),
        "getTagReferences": property_of("tagReferences"),
        "getNetworkVlans": property_of("networkVlans"),
        "getBackendRouters": property_of("backendRouters"),
        "getFrontendRouters": property_of("frontendRouters"),
        "getAllowedHost": answer(None),
        "getAttachedNetworkStorages": answer([]),
        "getBandwidthAllotmentDetail": answer(None),
        "getBillingCycleBandwidthUsage": answer([]),
        "getReverseDomainRecords": answer([]),
        "isCloudInit": answer(True),
        "isPingable": property_of("powered", True),
        "validateImageTemplate": validate_image,
        "getFirstAvailableBlockDevicePosition": first_free_device,
    },
}
