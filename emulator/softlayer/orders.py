"""A guest order that was read and checked, whichever way it was sent."""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

from emulator.softlayer.account import Account
from emulator.softlayer.catalog import DISK_CATEGORIES, Datacenter, Flavor, Image, Price, System
from emulator.softlayer.faults import (
    ORDER_INVALID,
    ORDER_LOCATION,
    Fault,
    insufficient_capacity,
    invalid_value,
    not_found,
    public,
)
from emulator.softlayer.records import OrderLine

GROUPS_PER_COMPONENT = 5
BOOT_DEVICE, SWAP_DEVICE, FIRST_DATA_DEVICE = 0, 1, 2
DEFAULT_PORT_SPEED = 100


@dataclass(frozen=True)
class Placement:
    """The network of one interface of a guest, as far as the order names it."""

    vlan_id: int | None = None
    router_id: int | None = None
    groups: tuple[int, ...] = ()


@dataclass(frozen=True)
class GuestOrder:
    """One guest as ordered."""

    hostname: str
    domain: str
    datacenter: Datacenter
    flavor: Flavor
    system: System | None
    image: Image | None
    disks: tuple[tuple[int, int], ...]  # device number and capacity in GB, without the boot disk
    port_speed: int
    hourly: bool = True
    ssh_key_ids: tuple[int, ...] = ()
    user_data: str = ""
    private: Placement = Placement()
    public: Placement = Placement()


def prices_of(account: Account, order: GuestOrder) -> tuple[Price, ...]:
    """The prices an order lists; the flavor's own parts are behind its preset id and not among them."""
    catalog = account.catalog
    disks = (catalog.disks[DISK_CATEGORIES[device - 1], capacity] for device, capacity in order.disks)
    system = (order.system.price,) if order.system else ()
    boot = catalog.boot_disks[order.flavor.boot_gb]
    return (*system, boot, *disks, catalog.port_speeds[order.port_speed], *catalog.included)


def billed_prices(account: Account, order: GuestOrder) -> tuple[Price, ...]:
    """Everything that is billed: the flavor's parts first, then the prices of the order."""
    boot = account.catalog.boot_disks[order.flavor.boot_gb]
    return (*(price for price in order.flavor.prices if price != boot), *prices_of(account, order))


def lines_of(prices: Iterable[Price], hostname: str = "", domain: str = "") -> list[OrderLine]:
    """The lines of an order for these prices."""
    return [OrderLine(price.description, price.category.code, hostname, domain) for price in prices]


def cost(account: Account, orders: Iterable[GuestOrder]) -> Decimal:
    """What ordered guests cost, each per hour or per month as it is billed."""
    return sum((account.catalog.cost(billed_prices(account, each), hourly=each.hourly) for each in orders), Decimal())


def check(account: Account, order: GuestOrder) -> GuestOrder:
    """Refuse what cannot be ordered, except for lack of room; hand the order back."""
    flavor, datacenter = order.flavor, order.datacenter
    if datacenter.name not in flavor.sold_in:
        raise Fault(ORDER_LOCATION, f"Preset {flavor.key_name} is not sold in {datacenter.name}.")
    if order.port_speed not in account.catalog.port_speeds:
        raise invalid_value("networkComponents.maxSpeed", f"{order.port_speed} is not one of 10, 100, 1000.")
    if order.image and order.image.virtualization != "HVM":
        raise public(f"Image template {order.image.guid} does not boot in HVM mode, which {flavor.key_name} needs.")
    if order.image and order.image.boot_gb > flavor.boot_gb:
        raise public(f"Image template {order.image.guid} needs a boot disk of {order.image.boot_gb} GB.")
    _check_disks(account, order)
    _check_references(account, order)
    return order


def check_room(account: Account, orders: list[GuestOrder]) -> None:
    """Refuse more guests than the account's limit, or than a datacenter or flavor has room for."""
    guests = account.store.guests.read_all()
    living, limit = sum(guest.cancelled is None for guest in guests), account.settings.instance_limit
    if living + len(orders) > limit:
        raise public(
            f"The account may have {limit} concurrent instances; it has {living} and {len(orders)} more are ordered."
        )
    there = Counter(place for guest in guests for place in _places(guest.datacenter, guest.flavor))
    wanted = Counter(place for each in orders for place in _places(each.datacenter.name, each.flavor.key_name))
    for place, number in sorted(wanted.items()):
        if there[place] + number > account.settings.capacity.get(place, math.inf):
            text = f"Insufficient capacity in {place} to provision {number} virtual guests."
            raise insufficient_capacity(text, account.settings.capacity_code)


def _places(datacenter: str, flavor: str) -> tuple[str, str]:
    """The names under which the settings may limit the room for one guest."""
    return datacenter, f"{datacenter}/{flavor}"


def _check_disks(account: Account, order: GuestOrder) -> None:
    if order.disks and not order.flavor.san:
        raise Fault(ORDER_INVALID, f"SAN disks cannot be ordered with the local disks of {order.flavor.key_name}.")
    expected = FIRST_DATA_DEVICE
    for device, capacity in order.disks:
        if device != expected:
            raise Fault(ORDER_INVALID, f"Block device {device} was given where device {expected} has to be.")
        if device >= FIRST_DATA_DEVICE + len(DISK_CATEGORIES) - 1:
            raise Fault(ORDER_INVALID, "A virtual guest has at most five disks.")
        disk_price(account, device, capacity)
        expected += 1


def disk_price(account: Account, device: int, capacity: int) -> Price:
    """The price of a disk of this size under this device number."""
    category = DISK_CATEGORIES[device - 1] if 1 < device <= len(DISK_CATEGORIES) else None
    price = account.catalog.disks.get((category or "", capacity))
    if price is None:
        sizes = sorted({size for _, size in account.catalog.disks})
        raise Fault(ORDER_INVALID, f"A SAN disk of {capacity} GB for device {device} is not sold; sizes: {sizes}.")
    return price


def _check_references(account: Account, order: GuestOrder) -> None:
    for key_id in order.ssh_key_ids:
        if key_id not in account.store.ssh_keys:
            raise not_found(key_id)
    for placement in (order.private, order.public):
        check_groups(account, placement.groups)
        if placement.vlan_id and placement.router_id:
            raise public("A router cannot be given together with a VLAN.")
        if placement.vlan_id and placement.vlan_id not in account.store.vlans:
            raise not_found(placement.vlan_id)
        if placement.router_id and not account.catalog.router(placement.router_id):
            raise not_found(placement.router_id)


def check_groups(account: Account, groups: tuple[int, ...] | list[int]) -> None:
    """Refuse unknown security groups, and more than one interface can have."""
    for group_id in groups:
        if group_id not in account.store.security_groups:
            raise not_found(group_id)
    if len(groups) > GROUPS_PER_COMPONENT:
        raise public(f"A network component can have at most {GROUPS_PER_COMPONENT} security groups.")
