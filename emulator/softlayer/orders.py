"""A guest order that was read and checked, whichever way it was sent."""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

from emulator.machines.spec import Disk
from emulator.softlayer.account import Account
from emulator.softlayer.catalog import DISK_CATEGORIES, Datacenter, Flavor, Image, Price
from emulator.softlayer.faults import (
    ORDER_INVALID,
    ORDER_LOCATION,
    Fault,
    insufficient_capacity,
    invalid_value,
    lacks,
    not_found,
    public,
)

GROUPS_PER_COMPONENT = 5
FIRST_DATA_DEVICE = 2  # 0 is the flavor's boot disk, 1 the swap
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
    system: Price | None
    image: Image | None
    disks: tuple[Disk, ...]  # without the boot disk
    port_speed: int
    hourly: bool
    ssh_key_ids: tuple[int, ...]
    user_data: str
    private: Placement
    public: Placement


def prices_of(account: Account, order: GuestOrder) -> tuple[Price, ...]:
    """The prices an order lists; the flavor's own parts are behind its preset id and not among them."""
    sized = account.catalog.sized
    system = (order.system,) if order.system else ()
    disks = (sized[DISK_CATEGORIES[disk.device - 1], disk.capacity_gb] for disk in order.disks)
    boot, port = sized[DISK_CATEGORIES[0], order.flavor.boot_gb], sized["port_speed", order.port_speed]
    return (*system, boot, *disks, port, *account.catalog.included)


def billed_prices(account: Account, order: GuestOrder) -> tuple[Price, ...]:
    """Everything that is billed: the flavor's parts first, then the prices of the order."""
    return (*order.flavor.prices, *prices_of(account, order))


def cost(account: Account, orders: Iterable[GuestOrder]) -> Decimal:
    """The price of ordered guests, each per hour or per month; every part is rounded alone, as it is billed alone."""
    total = Decimal()
    for order in orders:
        for price in billed_prices(account, order):
            total += price.hourly if order.hourly else account.catalog.monthly(price.hourly)
    return total


def check(account: Account, order: GuestOrder) -> GuestOrder:
    """Refuse what cannot be ordered, except for lack of room; hand the order back."""
    flavor, datacenter = order.flavor, order.datacenter
    if datacenter.name not in flavor.sold_in:
        raise Fault(ORDER_LOCATION, f"Preset {flavor.key_name} is not sold in {datacenter.name}.")
    if ("port_speed", order.port_speed) not in account.catalog.sized:
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
    sold = account.catalog.sized
    for expected, disk in enumerate(order.disks, FIRST_DATA_DEVICE):
        if disk.device != expected:
            raise Fault(ORDER_INVALID, f"Block device {disk.device} was given where device {expected} has to be.")
        if disk.device > len(DISK_CATEGORIES):
            raise Fault(ORDER_INVALID, "A virtual guest has at most five disks.")
        category = DISK_CATEGORIES[disk.device - 1]
        if (category, disk.capacity_gb) not in sold:
            sizes = [size for each, size in sold if each == category]
            raise Fault(ORDER_INVALID, f"A SAN disk of {disk.capacity_gb} GB is not sold; sizes: {sizes}.")


def _check_references(account: Account, order: GuestOrder) -> None:
    for key_id in order.ssh_key_ids:
        if key_id not in account.store.ssh_keys:
            raise not_found(key_id)
    check_groups(account, order.private.groups)
    check_groups(account, order.public.groups)
    if order.public.vlan_id or order.public.router_id:
        raise lacks("a VLAN or a router for a guest's public interface")
    vlan_id, router_id = order.private.vlan_id, order.private.router_id
    if vlan_id and router_id:
        raise public("A router cannot be given together with a VLAN.")
    vlan, router = account.store.vlans.read(vlan_id or 0), account.catalog.router(router_id or 0)
    for number, found in ((vlan_id, vlan), (router_id, router)):
        if number and not (found and found.private):
            raise not_found(number)


def check_groups(account: Account, groups: tuple[int, ...] | list[int]) -> None:
    """Refuse unknown security groups, and more than one interface can have."""
    for group_id in groups:
        if group_id not in account.store.security_groups:
            raise not_found(group_id)
    if len(groups) > GROUPS_PER_COMPONENT:
        raise public(f"A network component can have at most {GROUPS_PER_COMPONENT} security groups.")
