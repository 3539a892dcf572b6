"""SoftLayer_Product_Order: verify and place order containers for new guests."""

from decimal import Decimal
from typing import Any

from emulator.softlayer import guests as life
from emulator.softlayer.account import Account
from emulator.softlayer.calls import Call
from emulator.softlayer.dates import iso
from emulator.softlayer.faults import ORDER_INVALID, Fault, not_emulated
from emulator.softlayer.masks import project
from emulator.softlayer.objects import bills
from emulator.softlayer.order_container import UPGRADE_ORDER, read_container, totals, write_verified
from emulator.softlayer.orders import GuestOrder, cost
from emulator.softlayer.records import Guest, Order

CONTAINERS = "orderContainers"


def verify(account: Account, call: Call) -> dict[str, Any]:
    """Check an order and echo it with its totals; nothing changes."""
    container = _container(call)
    if CONTAINERS not in container:
        return write_verified(account, container, read_container(account, container))
    read = [(each, read_container(account, each)) for each in container[CONTAINERS]]
    orders = [order for _, each in read for order in each]
    echoed = [write_verified(account, each, of) for each, of in read]
    return {**container, CONTAINERS: echoed} | totals(account, cost(account, orders), is_hourly=orders[0].hourly)


def place(account: Account, call: Call) -> dict[str, Any]:
    """Accept an order; the receipt names the guests it makes."""
    container = _container(call)
    many = CONTAINERS in container
    containers = container[CONTAINERS] if many else [container]
    read = [(each, read_container(account, each)) for each in containers]
    order, guests = life.place(account, [each for _, of in read for each in of])
    details = _details(account, read, guests)
    total = Decimal(order.total)
    whole = {CONTAINERS: details} | totals(account, total, is_hourly=order.hourly) if many else details[0]
    return _receipt(account, order, whole)


def _container(call: Call) -> dict[str, Any]:
    container = call.argument(0)
    if not isinstance(container, dict) or container.get(CONTAINERS) == []:
        raise Fault(ORDER_INVALID, "An order container is needed.")
    if container.get("complexType") == UPGRADE_ORDER:
        raise not_emulated("SoftLayer_Product_Order", f"{call.method} of {UPGRADE_ORDER}")
    return container


def _details(
    account: Account, read: list[tuple[dict[str, Any], list[GuestOrder]]], guests: list[Guest]
) -> list[dict[str, Any]]:
    left = iter(guests)
    details = []
    for container, orders in read:
        made = [_made(next(left)) for _ in orders]
        details.append(write_verified(account, container, orders) | {"virtualGuests": made})
    return details


def _made(guest: Guest) -> dict[str, Any]:
    return {
        "id": guest.id,
        "globalIdentifier": guest.uuid,
        "hostname": guest.hostname,
        "domain": guest.domain,
        "fullyQualifiedDomainName": guest.name,
    }


def _receipt(account: Account, order: Order, details: dict[str, Any]) -> dict[str, Any]:
    placed = project(bills.order(account, order), {}) | {"items": bills.order_items(order)}
    return {"orderId": order.id, "orderDate": iso(order.created), "orderDetails": details, "placedOrder": placed}


SERVICES = {
    "SoftLayer_Product_Order": {
        "verifyOrder": verify,
        "placeOrder": place,
    }
}
