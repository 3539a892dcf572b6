"""Upgrade orders: more or larger disks, another port speed, another flavour of a living guest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from . import approval
from .account import Account
from .catalogue import DISK_CATEGORIES, Flavour, Price
from .containers import totals, write_price
from .faults import ORDER_INVALID, Fault, not_found, public
from .orders import FIRST_DATA_DEVICE, lines_of
from .records import Guest, Order, Upgrade
from .templates import number
from .transactions import strikes


@dataclass(frozen=True)
class UpgradeOrder:
    """What shall become of one guest."""

    guest: Guest
    disks: dict[int, Price]
    port_speed: Price | None = None
    flavour: Flavour | None = None

    @property
    def prices(self) -> tuple[Price, ...]:
        """The prices that the guest has from then on."""
        flavoured = self.flavour.prices if self.flavour else ()
        return (*self.disks.values(), *([self.port_speed] if self.port_speed else []), *flavoured)


def read_upgrade(account: Account, container: dict[str, Any]) -> UpgradeOrder:
    """The upgrade that a container asks for, refused where it cannot be done."""
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
    flavour = account.catalogue.flavour(number(preset, "presetId")) if preset else account.flavour_of(guest)
    if flavour is None:
        raise Fault(ORDER_INVALID, f"The preset '{preset}' is not valid for this package.")
    other = flavour if flavour.key_name != guest.flavour else None
    order = UpgradeOrder(guest, disks, speed, other)
    _check(account, order)
    return order


def verified_upgrade(account: Account, container: dict[str, Any], order: UpgradeOrder) -> dict[str, Any]:
    """The container as it is echoed; its totals are those of the prices in it."""
    cost = account.catalogue.cost(order.prices, hourly=order.guest.hourly)
    written = {"prices": [write_price(account, price) for price in order.prices], "quantity": 1}
    return {**container, **written} | totals(account, cost, is_hourly=order.guest.hourly)


def place_upgrade(account: Account, order: UpgradeOrder) -> Order:
    """Accept an upgrade; its transaction starts a little later, or once a person has approved the order."""
    guest = order.guest
    total = account.catalogue.cost(order.prices, hourly=guest.hourly)
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
        preset_id=order.flavour.id if order.flavour else None,
        never=strikes(account, "never", guest),
    )
    if account.settings.approval == "pending":
        record.status, record.held_upgrade = approval.PENDING, upgrade
    else:
        guest.upgrade = upgrade
    return record


def upgrade_prices(account: Account, guest: Guest) -> list[Price]:
    """The prices that a guest may be upgraded to."""
    catalogue = account.catalogue
    disks = list(catalogue.disks.values()) if account.flavour_of(guest).san else []
    private_only = guest.public is None
    return disks + [price for (_, only), price in catalogue.port_speeds.items() if only == private_only]


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
    """The price of one entry; the category that is named counts, as each disk size has one price per position."""
    price = account.catalogue.prices.get(number(each.get("id"), "prices.id"))
    if price is None:
        raise Fault(ORDER_INVALID, f"Price # {each.get('id')} does not exist or is not valid for this package.")
    named = [_category_code(account, category) for category in each.get("categories") or []]
    if not named or price.category.code in named:
        return price
    sized = account.catalogue.disks.get((named[0] or "", price.capacity or 0))
    if sized is None or price.category.code not in DISK_CATEGORIES:
        raise Fault(ORDER_INVALID, f"Price # {price.id} is not of category '{named[0]}'.")
    return sized


def _category_code(account: Account, category: dict[str, Any]) -> str | None:
    """The code of a category that is named by its code or by its id."""
    every = {price.category for price in account.catalogue.prices.values()}
    wanted = (category.get("categoryCode"), str(category.get("id")))
    return next((each.code for each in every if each.code == wanted[0] or str(each.id) == wanted[1]), None)


def _check(account: Account, order: UpgradeOrder) -> None:
    guest, present = order.guest, {disk.device: disk.capacity_gb for disk in order.guest.disks}
    if not order.prices:
        raise Fault(ORDER_INVALID, f"The order changes nothing on virtual guest {guest.id}.")
    if order.disks and not account.flavour_of(guest).san:
        raise Fault(ORDER_INVALID, f"SAN disks cannot be added to the local disks of {guest.flavour}.")
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
    flavour, now = order.flavour, account.flavour_of(guest)
    if flavour and (flavour.gpu_type, flavour.san, flavour.boot_gb) != (now.gpu_type, now.san, now.boot_gb):
        raise public(f"Virtual guest {guest.id} cannot change from {now.key_name} to {flavour.key_name} in place.")
