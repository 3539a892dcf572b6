"""Guests: ordering, reading, changing and cancelling them; and the package that is sold."""

from functools import partial
from typing import Any

from emulator.softlayer import guests as life
from emulator.softlayer.account import Account
from emulator.softlayer.calls import Call, apply_edit, find
from emulator.softlayer.catalog import Price
from emulator.softlayer.create_template import number, read_template
from emulator.softlayer.dates import iso
from emulator.softlayer.faults import invalid_value, public
from emulator.softlayer.host_names import read_name
from emulator.softlayer.objects import owned
from emulator.softlayer.order_container import price_view, read_container, write_container, write_verified
from emulator.softlayer.queries import View
from emulator.softlayer.services.reading import every, one, relations

SPEEDS = (0, 10, 100, 1000)


def create(account: Account, call: Call) -> View:
    """Order one guest."""
    _, made = life.place(account, [read_template(account, call.argument)], call.credentials.username)
    return owned.guest(account, made[0])


def generate_order_template(account: Account, call: Call) -> dict[str, Any]:
    """The order container for a create template; nothing is ordered."""
    return write_container(account, read_template(account, call.argument))


def delete(account: Account, call: Call) -> bool:
    """Cancel a guest at once."""
    life.cancel(account, find(account.store.guests, call))
    return True


def edit(account: Account, call: Call) -> bool:
    """Change hostname, domain or notes; the machine itself is not changed."""
    guest = find(account.store.guests, call)
    apply_edit(guest, call, "hostname", "domain", "notes")
    read_name({"hostname": guest.hostname, "domain": guest.domain})
    item = account.store.billing_items.get(guest.billing_item_id)
    if item:  # It is not there while the order waits for approval.
        item.hostname, item.domain = guest.hostname, guest.domain
    return True


def set_tags(account: Account, call: Call) -> bool:
    """Replace all tags of a guest."""
    find(account.store.guests, call).tags = [tag.strip() for tag in str(call.argument).split(",") if tag.strip()]
    return True


def set_speed(port: int, account: Account, call: Call) -> bool:
    """Set the speed of the interface; 0 disables it."""
    speed = number(call.argument, "speed")
    if speed not in SPEEDS:
        raise invalid_value("speed", f"{speed} is not one of 0, 10, 100, 1000.")
    find(account.store.guests, call).components[port].max_speed = speed
    return True


def reboot(account: Account, call: Call) -> bool:
    """Stop and start the machine."""
    guest = find(account.store.guests, call)
    if transaction := guest.active(account.now):
        raise public(f"Virtual guest {guest.id} has active transaction {transaction.id}.")
    guest.boots_wanted += 1
    return True


def get_package(account: Account, call: Call) -> View:
    """The one package that is sold."""
    return _package(find({account.catalog.package_id: account}, call))


def verify(account: Account, call: Call) -> dict[str, Any]:
    """Check an order and echo it with its totals; nothing changes."""
    return write_verified(account, call.argument, read_container(account, call.argument))


def place(account: Account, call: Call) -> dict[str, Any]:
    """Accept an order; the receipt names the guests it makes."""
    container = read_container(account, call.argument)
    order, guests = life.place(account, container, call.credentials.username)
    made = [owned.guest(account, each).local for each in guests]
    details = write_verified(account, call.argument, container) | {"virtualGuests": made}
    return {"orderId": order.id, "orderDate": iso(order.created), "orderDetails": details}


def _package(account: Account) -> View:
    """The package with its items, presets and regions; none is for this account alone."""
    catalog, sold = account.catalog, account.catalog.prices.values()
    return View(
        {"id": catalog.package_id, "keyName": catalog.package_key},
        {
            "accountRestrictedActivePresets": list,
            "activePresets": lambda: [
                View(
                    {
                        "id": each.id,
                        "keyName": each.key_name,
                        "description": ", ".join(part.description for part in each.prices),
                    },
                    {"prices": lambda each=each: [price_view(account, price) for price in each.prices]},
                )
                for each in catalog.flavors
            ],
            "items": lambda: [
                _item(account, [each for each in sold if each.key_name == key])
                for key in dict.fromkeys(each.key_name for each in sold)
            ],
            "regions": lambda: [
                View(
                    {"keyname": each.name.upper(), "description": f"{each.name.upper()} - {each.long_name}"},
                    {"location": lambda each=each: View({}, {"location": lambda: owned.datacenter(each)})},
                )
                for each in catalog.datacenters
                if any(each.name in flavor.sold_in for flavor in catalog.flavors)
            ],
        },
    )


def _item(account: Account, prices: list[Price]) -> View:
    """An item with its prices: a disk has one for each of its places in a guest."""
    first = prices[0]
    return View(
        {
            "id": first.id,
            "keyName": first.key_name,
            "description": first.description,
            "capacity": str(first.capacity or 0),
        },
        {
            "itemCategory": lambda: account.catalog.categories[first.category],
            "softwareDescription": lambda: account.catalog.software.get(first.id),
            "attributes": list,
            "prices": lambda: [price_view(account, each) for each in prices],
        },
    )


GUEST = partial(one, owned.guest, "guests")
SERVICES = {
    "SoftLayer_Virtual_Guest": {
        "createObject": create,
        "generateOrderTemplate": generate_order_template,
        "getObject": GUEST,
        "editObject": edit,
        "deleteObject": delete,
        "setTags": set_tags,
        "setPublicNetworkInterfaceSpeed": partial(set_speed, 1),
        "setPrivateNetworkInterfaceSpeed": partial(set_speed, 0),
        "rebootDefault": reboot,
        **relations(GUEST, "blockDevices", "bandwidthAllotmentDetail", "billingCycleBandwidthUsage"),
    },
    "SoftLayer_Product_Package": {
        "getAllObjects": partial(every, lambda account: [_package(account)]),
        **relations(get_package, "items", "activePresets", "accountRestrictedActivePresets", "regions"),
    },
    "SoftLayer_Product_Order": {
        "verifyOrder": verify,
        "placeOrder": place,
    },
}
