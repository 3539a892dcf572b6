"""Order containers: ``generateOrderTemplate`` returns them, ``placeOrder`` takes them."""

from decimal import Decimal
from typing import Any

from emulator.softlayer.account import Account
from emulator.softlayer.catalog import DISK_CATEGORIES, Flavor, Image, Price, System
from emulator.softlayer.create_template import (
    find_datacenter,
    find_image,
    number,
    port_speed_of,
    read_placement,
    read_user_data,
)
from emulator.softlayer.faults import ORDER_INVALID, Fault
from emulator.softlayer.host_names import read_name
from emulator.softlayer.orders import FIRST_DATA_DEVICE, GuestOrder, check, cost, prices_of

GUEST_ORDER = "SoftLayer_Container_Product_Order_Virtual_Guest"
UPGRADE_ORDER = "SoftLayer_Container_Product_Order_Virtual_Guest_Upgrade"


def money(amount: Decimal) -> str:
    """Dollars as orders write them: text, without a leading or trailing zero."""
    text = f"{amount.normalize():f}"
    return text if text == "0" else text.removeprefix("0")


def write_price(account: Account, price: Price) -> dict[str, Any]:
    """A price as it stands in an order."""
    category = {"id": price.category.id, "categoryCode": price.category.code, "name": price.category.name}
    item = {"id": price.item_id, "description": price.description, "keyName": price.key_name}
    if price.capacity is not None:
        item |= {"capacity": str(price.capacity), "units": price.units}
    return {
        "id": price.id,
        "hourlyRecurringFee": money(price.hourly),
        "recurringFee": money(account.catalog.monthly(price.hourly)),
        "setupFee": "0",
        "laborFee": "0",
        "oneTimeFee": "0",
        "categories": [category],
        "item": item,
    }


def write_container(account: Account, order: GuestOrder) -> dict[str, Any]:
    """The order template; like the real one it loses user data and port speed and names no VLAN or router."""
    return {
        "complexType": GUEST_ORDER,
        "imageTemplateId": order.image.id if order.image else None,
        "location": str(order.datacenter.id),
        "packageId": account.catalog.package_id,
        "presetId": order.flavor.id,
        "prices": [write_price(account, price) for price in prices_of(account, order)],
        "quantity": 1,
        "sourceVirtualGuestId": None,
        "sshKeys": [{"sshKeyIds": list(order.ssh_key_ids)}] if order.ssh_key_ids else [],
        "useHourlyPricing": order.hourly,
        "virtualGuests": [{"hostname": order.hostname, "domain": order.domain}],
    }


def read_container(account: Account, container: dict[str, Any]) -> list[GuestOrder]:
    """The guests that one order container asks for."""
    if container.get("packageId") not in (None, "", account.catalog.package_id):
        raise Fault(ORDER_INVALID, f"Package {container['packageId']} is not sold to this account.")
    guests = container.get("virtualGuests") or []
    quantity = number(container.get("quantity") or len(guests), "quantity")
    if not guests or quantity != len(guests):
        raise Fault(ORDER_INVALID, f"The quantity is {quantity}, but {len(guests)} virtual guests are described.")
    preset = container.get("presetId")
    flavor = account.catalog.flavor(number(preset, "presetId")) if preset else None
    if flavor is None:
        raise Fault(ORDER_INVALID, f"The preset '{preset or ''}' is not valid for this package.")
    prices = read_prices(account, container)
    return [check(account, _guest_order(account, container, guest, flavor, prices)) for guest in guests]


def read_prices(account: Account, container: dict[str, Any]) -> dict[str, Price]:
    """The container's prices by category; one price per category."""
    found: dict[str, Price] = {}
    for each in container.get("prices") or []:
        price = account.catalog.prices.get(number(each.get("id"), "prices.id"))
        if price is None:
            raise Fault(ORDER_INVALID, f"Price # {each.get('id')} does not exist or is not valid for this package.")
        if price.category.code in found and found[price.category.code] != price:
            raise Fault(ORDER_INVALID, f"There is more than one price of category {price.category.name}.")
        found[price.category.code] = price
    return found


def totals(account: Account, recurring: Decimal, *, is_hourly: bool) -> dict[str, Any]:
    """The sums of a verified or placed order of so much per hour or per month."""
    amount = money(recurring)
    hourly, monthly = (amount, "0") if is_hourly else ("0", amount)
    sums: dict[str, Any] = {}
    for tax in ("preTax", "postTax"):
        sums |= {
            f"{tax}Recurring": amount,
            f"{tax}RecurringHourly": hourly,
            f"{tax}RecurringMonthly": monthly,
            f"{tax}Setup": "0",
        }
    return sums | {
        "currencyShortName": account.catalog.currency,
        "proratedInitialCharge": monthly,
        "proratedOrderTotal": monthly,
        "totalRecurringTax": "0",
    }


def write_verified(account: Account, container: dict[str, Any], orders: list[GuestOrder]) -> dict[str, Any]:
    """The container as ``verifyOrder`` echoes it: prices in full, and the totals with the preset in them."""
    order = orders[0]
    place = {"id": order.datacenter.id, "name": order.datacenter.name, "longName": order.datacenter.long_name}
    full = {
        **container,
        "complexType": GUEST_ORDER,
        "locationObject": place,
        "packageId": account.catalog.package_id,
        "prices": [write_price(account, price) for price in prices_of(account, order)],
        "quantity": len(orders),
        "sendQuoteEmailFlag": None,
        "useHourlyPricing": order.hourly,
    }
    return full | totals(account, cost(account, orders), is_hourly=order.hourly)


def _guest_order(
    account: Account, container: dict[str, Any], guest: dict[str, Any], flavor: Flavor, prices: dict[str, Price]
) -> GuestOrder:
    hostname, domain = read_name(guest)
    system, image = _system_or_image(account, container, guest, prices)
    speed = prices.get("port_speed")
    if speed is None:
        raise Fault(ORDER_INVALID, "The order has no price of category Uplink Port Speeds.")
    asked = port_speed_of(guest)
    if asked is not None and asked != speed.capacity:
        raise Fault(ORDER_INVALID, f"networkComponents.maxSpeed {asked} does not agree with price # {speed.id}.")
    boot = prices.get("guest_disk0")
    if boot and boot.capacity != flavor.boot_gb:
        raise Fault(ORDER_INVALID, f"Price # {boot.id} is not the first disk of {flavor.key_name}.")
    codes = DISK_CATEGORIES[1:]
    disks = tuple(
        (device, prices[code].capacity) for device, code in enumerate(codes, FIRST_DATA_DEVICE) if code in prices
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
    account: Account, container: dict[str, Any], guest: dict[str, Any], prices: dict[str, Price]
) -> tuple[System | None, Image | None]:
    group = guest.get("blockDeviceTemplateGroup") or container.get("blockDeviceTemplateGroup") or {}
    key = container.get("imageTemplateId") or container.get("imageTemplateGlobalIdentifier")
    key = key or group.get("id") or group.get("globalIdentifier")
    price = prices.get("os")
    if key and price:
        raise Fault(ORDER_INVALID, f"Price # {price.id} is an operating system, and an image template is given too.")
    if key:
        return None, find_image(account, key)
    if price is None:
        raise Fault(ORDER_INVALID, "The order has no price of category Operating System and no image template.")
    return next(system for system in account.catalog.systems if system.price == price), None


def _ssh_keys(container: dict[str, Any]) -> tuple[int, ...]:
    entries = container.get("sshKeys") or []
    return tuple(number(key, "sshKeyIds") for entry in entries for key in entry.get("sshKeyIds") or [])
