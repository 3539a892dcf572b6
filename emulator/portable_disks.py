"""The life of a portable volume: ordered on its own, attached to one guest at a time, costing until it is cancelled.

The machine behind a guest gets no such disk: the account's records change, and the guest restarts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from . import billing
from .account import Account
from .catalogue import Datacenter, Price
from .faults import ORDER_INVALID, Fault, public
from .orders import FIRST_DATA_DEVICE, lines_of
from .records import BillingItem, Guest, Order, PortableDisk
from .templates import find_datacenter, number

CONTAINER = "SoftLayer_Container_Product_Order_Virtual_Disk_Image"
PACKAGE = "ADDITIONAL_SERVICES_PORTABLE_STORAGE"
LAST_DEVICE = 5


@dataclass(frozen=True)
class DiskOrder:
    """One portable volume as ordered."""

    description: str
    datacenter: Datacenter
    hourly: bool
    prices: tuple[Price, ...]


def read(account: Account, container: dict[str, Any]) -> DiskOrder:
    """The portable volume that a container asks for."""
    package = account.catalogue.package(PACKAGE)
    prices = [package.price(number(each.get("id"), "prices.id")) for each in container.get("prices") or []]
    if len(prices) != 1 or prices[0] is None or number(container.get("quantity") or 1, "quantity") != 1:
        raise Fault(ORDER_INVALID, "An order of a portable volume has one price, of its size, and quantity 1.")
    if not container.get("diskDescription"):
        raise Fault(ORDER_INVALID, "diskDescription is needed.")
    place = find_datacenter(account, container.get("location"))
    return DiskOrder(str(container["diskDescription"]), place, bool(container.get("useHourlyPricing")), (prices[0],))


def place(account: Account, wanted: DiskOrder) -> Order:
    """Accept an order: the volume is there, and attached to nothing."""
    price, total = wanted.prices[0], account.catalogue.cost(wanted.prices, hourly=wanted.hourly)
    lines = lines_of(wanted.prices)
    order = Order(account.next_id(), account.now, str(total), wanted.hourly, lines, [], kind="portable")
    account.store.orders[order.id] = order
    disk_id = account.next_id()
    described = billing.Billed("portable", disk_id, wanted.datacenter.name, category="portable_storage")
    item = billing.open_item(account, order, wanted.prices, described, hourly=wanted.hourly)
    account.store.portable_disks[disk_id] = PortableDisk(
        id=disk_id,
        billing_item_id=item.id,
        description=wanted.description,
        capacity_gb=price.capacity or 0,
        datacenter=wanted.datacenter.name,
        uuid=account.token(),
        created=account.now,
    )
    return order


def holder(account: Account, disk: PortableDisk) -> Guest | None:
    """The guest that a disk is attached to; one that is cancelled has let go of it."""
    guest = account.store.guests.peek(disk.guest_id or 0)
    return guest if guest and guest.cancelled is None else None


def attached(account: Account, guest: Guest) -> list[PortableDisk]:
    """The portable volumes on a guest."""
    return [each for each in account.store.portable_disks.look() if holder(account, each) is guest]


def attach(account: Account, disk: PortableDisk, guest: Guest) -> None:
    """Put a disk on a guest, under the next free device number."""
    here = holder(account, disk)
    if here:
        raise public(f"Disk image {disk.id} is attached to virtual guest {here.id}.")
    if not account.flavour_of(guest).san:
        raise public(f"Virtual guest {guest.id} has local disks and takes no portable volume.")
    used = {each.device for each in (*guest.disks, *attached(account, guest))}
    free = [device for device in range(FIRST_DATA_DEVICE, LAST_DEVICE + 1) if device not in used]
    if not free:
        raise public(f"Virtual guest {guest.id} has five disks already.")
    # A volume may come from another datacenter: the service copies it to where its guest is.
    disk.guest_id, disk.device, disk.datacenter = guest.id, free[0], guest.datacenter
    disk.block_device_id = account.next_id()


def detach(account: Account, disk: PortableDisk, guest: Guest) -> None:
    """Take a disk off a guest; it stays, and goes on costing."""
    if holder(account, disk) is not guest:
        raise public(f"Disk image {disk.id} is not attached to virtual guest {guest.id}.")
    disk.guest_id = disk.device = None


def cannot_end(account: Account, item: BillingItem) -> str | None:
    """What keeps a portable volume from being cancelled now."""
    here = holder(account, account.store.portable_disks[item.resource_id])
    return f"Disk image {item.resource_id} is attached to virtual guest {here.id}." if here else None


def end(account: Account, item: BillingItem) -> None:
    """Take a portable volume away."""
    del account.store.portable_disks[item.resource_id]
