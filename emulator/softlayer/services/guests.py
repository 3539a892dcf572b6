"""SoftLayer_Virtual_Guest and SoftLayer_Product_Order: ordering, reading, changing and cancelling guests."""

from typing import Any

from emulator.softlayer import guests as life
from emulator.softlayer.account import Account
from emulator.softlayer.calls import Call
from emulator.softlayer.create_template import number, read_template
from emulator.softlayer.dates import iso
from emulator.softlayer.faults import ORDER_INVALID, Fault, invalid_value, lacks, public
from emulator.softlayer.host_names import read_name
from emulator.softlayer.objects import bills, owned
from emulator.softlayer.order_container import UPGRADE_ORDER, read_container, write_container, write_verified
from emulator.softlayer.queries import project
from emulator.softlayer.records import Guest
from emulator.softlayer.services.finding import changes_of, find_guest
from emulator.softlayer.views import View

CONTAINERS = "orderContainers"
SPEEDS = (0, 10, 100, 1000)


def create(account: Account, call: Call) -> View:
    """Order one guest."""
    _, made = life.place(account, [read_template(account, call.argument(0))])
    return owned.created(account, made[0])


def create_many(account: Account, call: Call) -> list[View]:
    """Order several guests, all or none."""
    _, made = life.place(account, [read_template(account, each) for each in call.argument(0)])
    return [owned.created(account, each) for each in made]


def generate_order_template(account: Account, call: Call) -> dict[str, Any]:
    """The order container for a create template; nothing is ordered."""
    return write_container(account, read_template(account, call.argument(0)))


def get(account: Account, call: Call) -> View:
    """A guest."""
    return owned.guest(account, find_guest(account, call))


def delete(account: Account, call: Call) -> bool:
    """Cancel a guest at once."""
    life.cancel(account, find_guest(account, call))
    return True


def get_billing_item(account: Account, call: Call) -> View | None:
    """What a guest costs; nothing once it is cancelled."""
    return bills.of_guest(account, find_guest(account, call))


def edit(account: Account, call: Call) -> bool:
    """Change hostname, domain or notes; the machine itself is not changed."""
    guest, changes = find_guest(account, call), changes_of(call, "hostname", "domain", "notes")
    hostname, domain = read_name({"hostname": guest.hostname, "domain": guest.domain} | changes)
    guest.hostname, guest.domain, guest.modified = hostname, domain, account.now
    guest.notes = guest.notes if changes.get("notes") is None else str(changes["notes"])
    item = account.store.billing_items.get(guest.billing_item_id)
    if item:  # It is not there while the order waits for approval.
        item.hostname, item.domain = hostname, domain
    return True


def set_tags(account: Account, call: Call) -> bool:
    """Replace all tags of a guest."""
    find_guest(account, call).tags = [tag.strip() for tag in str(call.argument(0)).split(",") if tag.strip()]
    return True


def set_public_speed(account: Account, call: Call) -> bool:
    """Set the speed of the public interface; 0 disables it."""
    find_guest(account, call).public.max_speed = _speed(call)
    return True


def set_private_speed(account: Account, call: Call) -> bool:
    """Set the speed of the private interface; 0 disables it."""
    find_guest(account, call).private.max_speed = _speed(call)
    return True


def reboot(account: Account, call: Call) -> bool:
    """Stop and start the machine."""
    guest = find_guest(account, call)
    if guest.transaction:
        raise public(f"Virtual guest {guest.id} has active transaction {guest.transaction.id}.")
    guest.boots_wanted += 1
    return True


def verify(account: Account, call: Call) -> dict[str, Any]:
    """Check an order and echo it with its totals; nothing changes."""
    container = _container(call)
    return write_verified(account, container, read_container(account, container))


def place(account: Account, call: Call) -> dict[str, Any]:
    """Accept an order; the receipt names the guests it makes."""
    container = _container(call)
    wanted = read_container(account, container)
    order, guests = life.place(account, wanted)
    details = write_verified(account, container, wanted) | {"virtualGuests": [_made(each) for each in guests]}
    placed = project(bills.order(account, order), {}) | {"items": bills.order_items(order)}
    return {"orderId": order.id, "orderDate": iso(order.created), "orderDetails": details, "placedOrder": placed}


def _container(call: Call) -> dict[str, Any]:
    container = call.argument(0)
    if not isinstance(container, dict):
        raise Fault(ORDER_INVALID, "An order container is needed.")
    if CONTAINERS in container:
        raise lacks(f"{call.method} of several containers ({CONTAINERS})")
    if container.get("complexType") == UPGRADE_ORDER:
        raise lacks(f"{call.method} of {UPGRADE_ORDER}")
    return container


def _made(guest: Guest) -> dict[str, Any]:
    return {
        "id": guest.id,
        "globalIdentifier": guest.uuid,
        "hostname": guest.hostname,
        "domain": guest.domain,
        "fullyQualifiedDomainName": guest.name,
    }


def _speed(call: Call) -> int:
    speed = number(call.argument(0), "speed")
    if speed not in SPEEDS:
        raise invalid_value("speed", f"{speed} is not one of 0, 10, 100, 1000.")
    return speed


SERVICES = {
    "SoftLayer_Virtual_Guest": {
        "createObject": create,
        "createObjects": create_many,
        "generateOrderTemplate": generate_order_template,
        "getObject": get,
        "editObject": edit,
        "deleteObject": delete,
        "getBillingItem": get_billing_item,
        "setTags": set_tags,
        "setPublicNetworkInterfaceSpeed": set_public_speed,
        "setPrivateNetworkInterfaceSpeed": set_private_speed,
        "rebootDefault": reboot,
    },
    "SoftLayer_Product_Order": {
        "verifyOrder": verify,
        "placeOrder": place,
    },
}
