"""Order containers: ``generateOrderTemplate`` returns them, ``placeOrder`` takes them."""

from typing import Any

from emulator.machines.spec import Disk
from emulator.softlayer.account import Account
from emulator.softlayer.catalog import DISK_CATEGORIES, Flavor, Image, Price
from emulator.softlayer.create_template import (
    find_datacenter,
    find_image,
    number,
    port_speed_of,
    read_placement,
    read_user_data,
)
from emulator.softlayer.faults import ORDER_INVALID, Fault, lacks
from emulator.softlayer.host_names import read_name
from emulator.softlayer.orders import FIRST_DATA_DEVICE, GuestOrder, check, cost, prices_of
from emulator.softlayer.queries import View

GUEST_ORDER = "SoftLayer_Container_Product_Order_Virtual_Guest"


def write_container(account: Account, order: GuestOrder) -> dict[str, Any]:
    """The order template; like the real one it loses user data and port speed and names no VLAN or router."""
    return {
        "complexType": GUEST_ORDER,
        "imageTemplateId": None,
        "location": str(order.datacenter.id),
        "packageId": account.catalog.package_id,
        "presetId": order.flavor.id,
        "prices": [write_price(account, price) for price in prices_of(account, order)],
        "quantity": 1,
        "sshKeys": [{"sshKeyIds": list(order.ssh_key_ids)}] if order.ssh_key_ids else [],
        "useHourlyPricing": order.hourly,
        "virtualGuests": [{"hostname": order.hostname, "domain": order.domain}],
    }


def read_container(account: Account, container: Any) -> list[GuestOrder]:
    """The guests that one order container asks for."""
    if not isinstance(container, dict) or container.get("complexType") != GUEST_ORDER:
        raise lacks(f"orders without the complexType {GUEST_ORDER}")
    if container.get("packageId") != account.catalog.package_id:
        raise Fault(ORDER_INVALID, f"Package {container.get('packageId')} is not sold to this account.")
    guests = container.get("virtualGuests") or []
    quantity = number(container.get("quantity"), "quantity")
    if not guests or quantity != len(guests):
        raise Fault(ORDER_INVALID, f"The quantity is {quantity}, but {len(guests)} virtual guests are described.")
    flavor = account.catalog.flavor(number(container.get("presetId"), "presetId"))
    if flavor is None:
        raise Fault(ORDER_INVALID, f"The preset '{container['presetId']}' is not valid for this package.")
    prices = read_prices(account, container)
    return [check(account, _guest_order(account, container, guest, flavor, prices)) for guest in guests]


def read_prices(account: Account, container: dict[str, Any]) -> dict[str, Price]:
    """The container's prices by category; one price per category."""
    prices: dict[str, Price] = {}
    for each in container.get("prices") or []:
        price = account.catalog.prices.get(number(each.get("id"), "prices.id"))
        if price is None:
            raise Fault(ORDER_INVALID, f"Price # {each.get('id')} does not exist or is not valid for this package.")
        if price.category in prices:
            raise Fault(ORDER_INVALID, f"There is more than one price of category {price.category}.")
        prices[price.category] = price
    return prices


def write_verified(account: Account, container: dict[str, Any], orders: list[GuestOrder]) -> dict[str, Any]:
    """The container as ``verifyOrder`` echoes it, with what all of it costs an hour or a month."""
    amount = f"{cost(account, orders).normalize():f}"
    hourly, monthly = (amount, "0") if orders[0].hourly else ("0", amount)
    totals = {"postTaxRecurringHourly": hourly, "postTaxRecurringMonthly": monthly}
    return {**container, "currencyShortName": account.catalog.currency, **totals}


def write_price(account: Account, price: Price) -> dict[str, Any]:
    """A price that everybody pays everywhere: in no location's group; fees are texts."""
    return {
        "id": price.id,
        "hourlyRecurringFee": f"{price.hourly.normalize():f}",
        "recurringFee": f"{account.catalog.monthly(price.hourly).normalize():f}",
        "locationGroupId": None,
        "categories": [account.catalog.categories[price.category]],
        "item": {"keyName": price.key_name, "description": price.description},
    }


def price_view(account: Account, price: Price) -> View:
    """A price as the catalog shows it."""
    return View(
        {name: value for name, value in write_price(account, price).items() if name not in {"categories", "item"}},
        {"categories": lambda: [account.catalog.categories[price.category]]},
    )


def _guest_order(
    account: Account, container: dict[str, Any], guest: dict[str, Any], flavor: Flavor, prices: dict[str, Price]
) -> GuestOrder:
    hostname, domain = read_name(guest)
    system, image = _system_or_image(account, container, prices)
    speed = prices.get("port_speed")
    if speed is None:
        raise Fault(ORDER_INVALID, "The order has no price of category port_speed.")
    asked = port_speed_of(guest)
    if asked is not None and asked != speed.capacity:
        raise Fault(ORDER_INVALID, f"networkComponents.maxSpeed {asked} does not agree with price # {speed.id}.")
    boot = prices.get("guest_disk0")
    if boot and boot.capacity != flavor.boot_gb:
        raise Fault(ORDER_INVALID, f"Price # {boot.id} is not the first disk of {flavor.key_name}.")
    codes = DISK_CATEGORIES[1:]
    disks = tuple(
        Disk(device, prices[code].capacity) for device, code in enumerate(codes, FIRST_DATA_DEVICE) if code in prices
    )
    return GuestOrder(
        hostname=hostname,
        domain=domain,
        datacenter=find_datacenter(account, container.get("location")),
        flavor=flavor,
        system=system,
        image=image,
        disks=disks,
        port_speed=speed.capacity,
        hourly=bool(container.get("useHourlyPricing")),
        ssh_key_ids=_ssh_keys(container),
        user_data=read_user_data(guest),
        private=read_placement(guest, "primaryBackendNetworkComponent"),
        public=read_placement(guest, "primaryNetworkComponent"),
    )


def _system_or_image(
    account: Account, container: dict[str, Any], prices: dict[str, Price]
) -> tuple[Price | None, Image | None]:
    key, price = container.get("imageTemplateId"), prices.get("os")
    if key and price:
        raise Fault(ORDER_INVALID, f"Price # {price.id} is an operating system, and an image template is given too.")
    if not key and not price:
        raise Fault(ORDER_INVALID, "The order has no price of category os and no image template.")
    return price, find_image(account, key) if key else None


def _ssh_keys(container: dict[str, Any]) -> tuple[int, ...]:
    entries = container.get("sshKeys") or []
    return tuple(number(key, "sshKeyIds") for entry in entries for key in entry.get("sshKeyIds") or [])
