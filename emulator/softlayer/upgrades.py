"""Upgrade orders: more or larger disks, another port speed, another flavor of a living guest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from emulator.softlayer import approval
from emulator.softlayer.account import Account
from emulator.softlayer.catalog import DISK_CATEGORIES, Flavor, Price
from emulator.softlayer.create_template import number
from emulator.softlayer.faults import ORDER_INVALID, Fault, not_found, public
from emulator.softlayer.order_container import totals, write_price
from emulator.softlayer.orders import FIRST_DATA_DEVICE, lines_of
from emulator.softlayer.records import Guest, Order, Upgrade
from emulator.softlayer.transactions import injects


@dataclass(frozen=True)
class UpgradeOrder:
    """The changes to one guest."""

    guest: Guest
    disks: dict[int, Price]
    port_speed: Price | None = None
    flavor: Flavor | None = None

    @property
    def prices(self) -> tuple[Price, ...]:
        """The prices that the guest has from then on."""
        flavored = self.flavor.prices if self.flavor else ()
        return (*self.disks.values(), *([self.port_speed] if self.port_speed else []), *flavored)


def read_upgrade(account: Account, container: dict[str, Any]) -> UpgradeOrder:
    """The upgrade that a container asks for; refused if it cannot be done."""
    guest = _guest(account, container)
    disks: dict[int, Price] = {}
    speed = None
    for each in container.get("prices") or []:
        price = _price(account, each)
        if price.category.code in DISK_CATEGORIES[1:]:
            disks[DISK_CATEGORIES.index(price.category.code) + 1] = price
        elif price.category.code == "port_speed":
            speed = price
        else:
            raise Fault(ORDER_INVALID, f"Price # {price.id} ({price.category.name}) cannot be upgraded on its own.")
    preset = container.get("presetId")
    flavor = account.catalog.flavor(number(preset, "presetId")) if preset else account.flavor_of(guest)
    if flavor is None:
        raise Fault(ORDER_INVALID, f"The preset '{preset}' is not valid for this package.")
    other = flavor if flavor.key_name != guest.flavor else None
    order = UpgradeOrder(guest, disks, speed, other)
    _check(account, order)
    return order


def verified_upgrade(account: Account, container: dict[str, Any], order: UpgradeOrder) -> dict[str, Any]:
    """The container as it is echoed; its totals are those of the prices in it."""
    cost = account.catalog.cost(order.prices, hourly=order.guest.hourly)
    written = {"prices": [write_price(account, price) for price in order.prices], "quantity": 1}
    return {**container, **written} | totals(account, cost, is_hourly=order.guest.hourly)


def place_upgrade(account: Account, order: UpgradeOrder) -> Order:
    """Accept an upgrade; its transaction starts a little later, or once a person has approved the order."""
    guest = order.guest
    total = account.catalog.cost(order.prices, hourly=guest.hourly)
    lines = lines_of(order.prices, guest.hostname, guest.domain)
    record = Order(account.next_id(), account.now, str(total), guest.hourly, lines, [guest.id], kind="upgrade")
    account.store.orders[record.id] = record
    upgrade = Upgrade(
        id=account.next_id(),
        order_id=record.id,
        ordered=account.now,
        starts=account.now + account.settings.upgrade_starts_after_s,
        disks={device: price.capacity for device, price in order.disks.items()},
        port_speed=order.port_speed.capacity if order.port_speed else None,
        preset_id=order.flavor.id if order.flavor else None,
        never=injects(account, "never", guest),
    )
    if account.settings.approval == "pending":
        record.status, record.held_upgrade = approval.PENDING, upgrade
    else:
        guest.upgrade = upgrade
    return record


def upgrade_prices(account: Account, guest: Guest) -> list[Price]:
    """The prices that a guest may be upgraded to."""
    catalog = account.catalog
    disks = list(catalog.disks.values()) if account.flavor_of(guest).san else []
    private_only = guest.public is None
    return disks + [price for (_, only), price in catalog.port_speeds.items() if only == private_only]


def _guest(account: Account, container: dict[str, Any]) -> Guest:
    guests = container.get("virtualGuests") or []
    if len(guests) != 1:
        raise Fault(ORDER_INVALID, f"An upgrade order is for one virtual guest, not for {len(guests)}.")
    guest = account.store.guests.get(number(guests[0].get("id"), "virtualGuests.id"))
    if guest is None or guest.cancelled is not None:
        raise not_found(guests[0].get("id"))
    if guest.transaction or guest.upgrade or guest.provisioned is None:
        raise public(f"Virtual guest {guest.id} has an active transaction or an open upgrade request.")
    return guest


def _price(account: Account, each: dict[str, Any]) -> Price:
    """The price of one entry in its named category: a disk size has one price for each position."""
    price = account.catalog.prices.get(number(each.get("id"), "prices.id"))
    if price is None:
        raise Fault(ORDER_INVALID, f"Price # {each.get('id')} does not exist or is not valid for this package.")
    named = [_category_code(account, category) for category in each.get("categories") or []]
    if not named or price.category.code in named:
        return price
    sized = account.catalog.disks.get((named[0] or "", price.capacity or 0))
    if sized is None or price.category.code not in DISK_CATEGORIES:
        raise Fault(ORDER_INVALID, f"Price # {price.id} is not of category '{named[0]}'.")
    return sized


def _category_code(account: Account, category: dict[str, Any]) -> str | None:
    """The code of a category that is named by its code or by its id."""
    every = {price.category for price in account.catalog.prices.values()}
    wanted = (category.get("categoryCode"), str(category.get("id")))
    return next((each.code for each in every if each.code == wanted[0] or str(each.id) == wanted[1]), None)


def _check(account: Account, order: UpgradeOrder) -> None:
    guest, present = order.guest, {disk.device: disk.capacity_gb for disk in order.guest.disks}
    if not order.prices:
        raise Fault(ORDER_INVALID, f"The order changes nothing on virtual guest {guest.id}.")
    if order.disks and not account.flavor_of(guest).san:
        raise Fault(ORDER_INVALID, f"SAN disks cannot be added to the local disks of {guest.flavor}.")
    highest = max([*present, FIRST_DATA_DEVICE - 1])
    for device, price in sorted(order.disks.items()):
        if price.capacity < present.get(device, 0):
            raise Fault(
                ORDER_INVALID, f"Disk {device} has {present[device]} GB and cannot shrink to {price.capacity} GB."
            )
        if device > highest + 1:
            raise Fault(ORDER_INVALID, f"Disk {device} cannot be added while disk {device - 1} is missing.")
        highest = max(highest, device)
    if order.port_speed and order.port_speed.id not in {price.id for price in upgrade_prices(account, guest)}:
        raise Fault(ORDER_INVALID, f"Price # {order.port_speed.id} does not fit the interfaces of guest {guest.id}.")
    flavor, now = order.flavor, account.flavor_of(guest)
    if flavor and (flavor.gpu_type, flavor.san, flavor.boot_gb) != (now.gpu_type, now.san, now.boot_gb):
        raise public(f"Virtual guest {guest.id} cannot change from {now.key_name} to {flavor.key_name} in place.")
