"""The life of a volume: ordered, provisioned, lent to guests, cancelled, reclaimed."""

from __future__ import annotations

from collections.abc import Iterable

from . import billing
from .account import Account
from .faults import ACCESS_BUSY, Fault, not_found, public
from .orders import lines_of
from .records import BillingItem, Guest, Order, Transaction, Volume
from .volume_orders import VolumeOrder

PROVISION, RECLAIM = "Provision Volume", "Reclaim Volume"
LIMIT = 700  # volumes of an account
LUNS = 256


def place(account: Account, wanted: VolumeOrder) -> Order:
    """Accept an order: the volume is billed and being provisioned from now on."""
    if len(account.store.volumes) >= LIMIT:
        raise public(f"The account may have {LIMIT} volumes, and has them.")
    total = account.catalogue.cost(wanted.prices, hourly=wanted.hourly)
    lines = lines_of(wanted.prices)
    order = Order(account.next_id(), account.now, str(total), wanted.hourly, lines, [], kind="volume")
    account.store.orders[order.id] = order
    described = billing.Billed("volume", 0, wanted.datacenter.name, category="storage_as_a_service")
    item = billing.open_item(account, order, wanted.prices, described, hourly=wanted.hourly)
    volume = _new(account, wanted, order, item.id)
    item.resource_id = volume.id
    account.store.volumes[volume.id] = volume
    return order


def advance(account: Account) -> bool:
    """Let the work on volumes that is due come to its end; tell whether there was any."""
    due = [each.id for each in account.store.volumes.look() if (end := _over(each)) and end <= account.now]
    for volume in [account.store.volumes[each] for each in due]:
        volume.transaction = None
        if volume.cancelled is not None:
            del account.store.volumes[volume.id]
        else:
            _end_provision(account, volume)
    return bool(due)


def next_moments(account: Account) -> list[float]:
    """When the clock makes something happen to a volume."""
    return [end for each in account.store.volumes.look() if (end := _over(each)) and end > account.now]


def cannot_end(account: Account, item: BillingItem) -> str | None:
    """What keeps a volume from being cancelled now."""
    volume = account.store.volumes[item.resource_id]
    if volume.transaction is None:
        return None
    return f"Volume {volume.id} has active transaction {volume.transaction.id} ({volume.transaction.group})."


def end(account: Account, item: BillingItem) -> None:
    """Take a volume away from its guests and begin to reclaim it; it is still listed until that is over."""
    volume = account.store.volumes[item.resource_id]
    volume.cancelled, volume.allowed_guests = account.now, []
    volume.transaction = Transaction(account.next_id(), RECLAIM, account.now, account.settings.volume_reclaim_s)


def allow(account: Account, volume: Volume, guest_ids: Iterable[int]) -> None:
    """Let guests attach a volume."""
    guests = [_guest(account, volume, each) for each in guest_ids]
    _begin_access_change(account, volume)
    volume.allowed_guests = sorted({*volume.allowed_guests, *(guest.id for guest in guests)})


def forbid(account: Account, volume: Volume, guest_ids: Iterable[int]) -> None:
    """Take the permission back; who has none loses nothing."""
    _begin_access_change(account, volume)
    volume.allowed_guests = [each for each in volume.allowed_guests if each not in set(guest_ids)]


def allowed(account: Account, volume: Volume) -> list[Guest]:
    """The guests that may attach a volume, as far as they are still there."""
    found = (account.store.guests.peek(each) for each in volume.allowed_guests)
    return [guest for guest in found if guest]


def _new(account: Account, wanted: VolumeOrder, order: Order, item_id: int) -> Volume:
    number = int(account.store.facts.get("volumes", 0)) + 1
    account.store.facts["volumes"] = str(number)
    letter = "L" if wanted.kind == "block" else "V"
    return Volume(
        id=account.next_id(),
        order_id=order.id,
        billing_item_id=item_id,
        username=f"SL02SE{letter}{account.id}-{number}",
        kind=wanted.kind,
        datacenter=wanted.datacenter.name,
        capacity_gb=wanted.capacity_gb,
        iops=wanted.iops,
        created=account.now,
        hourly=wanted.hourly,
        tier=wanted.tier,
        system=wanted.system,
        lun=number % LUNS,
        password=account.token()[:16],
        transaction=Transaction(account.next_id(), PROVISION, account.now, account.settings.volume_s),
    )


def _end_provision(account: Account, volume: Volume) -> None:
    volume.provisioned = account.now
    if account.settings.volume_id_changes:
        del account.store.volumes[volume.id]
        volume.id = account.next_id()
        account.store.volumes[volume.id] = volume
        account.store.billing_items[volume.billing_item_id].resource_id = volume.id


def _over(volume: Volume) -> float | None:
    work = volume.transaction
    return work.started + work.duration_s if work else None


def _guest(account: Account, volume: Volume, guest_id: int) -> Guest:
    guest = account.store.guests.peek(guest_id)
    if guest is None or guest.cancelled is not None:
        raise not_found(guest_id)
    if guest.datacenter != volume.datacenter:
        raise public(f"Guest {guest_id} is in {guest.datacenter}, volume {volume.id} in {volume.datacenter}.")
    return guest


def _begin_access_change(account: Account, volume: Volume) -> None:
    if volume.transaction:
        raise public(f"Volume {volume.id} has active transaction {volume.transaction.id}.")
    if account.now < volume.access_changes_until:
        raise Fault(ACCESS_BUSY, f"The access of volume {volume.id} is being changed already.")
    volume.access_changes_until = account.now + account.settings.access_change_s
