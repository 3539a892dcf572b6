"""Transactions: named steps on the account's clock, and what happens when one is over."""

from __future__ import annotations

from . import cancellation, networks, volumes
from .account import Account
from .billing import replace_fee
from .catalogue import DISK_CATEGORIES
from .records import Guest, GuestDisk, Transaction

PROVISION = "Service Setup"
UPGRADE = "UPGRADE"
RECLAIM = "Cloud Instance Reclaim"
RELOAD = "OS Reload"
DISK_CHANGE = "Attach or Detach Disk Image"

STEPS = {
    PROVISION: (
        "ASSIGN_HOST",
        "CLONE_CLOUD_TEMPLATE",
        "ATTACH_PRIMARY_DISK",
        "CLOUD_PROVISION_SETUP",
        "CLOUD_CONFIGURE_METADATA_DISK",
        "POWER_ON",
        "INSTALL_COMPLETE",
        "SERVICE_SETUP",
    ),
    UPGRADE: ("UPGRADE_POWER_OFF", "UPGRADE_ATTACH_DISK", "UPGRADE_POWER_ON"),
    RECLAIM: ("CLOUD_ISO_BOOT_TEAR_DOWN", "CLOUD_INSTANCE_NETWORK_RECLAIM", "RECLAIM_NETWORK"),
    RELOAD: ("CLOUD_PROVISION_SETUP", "POWER_ON", "INSTALL_COMPLETE"),
    DISK_CHANGE: ("POWER_OFF", "CHANGE_DISKS", "POWER_ON"),
}
UPGRADE_STARTS_AFTER_S = 1.0


def begin(account: Account, guest: Guest, group: str, duration_s: float) -> Transaction:
    """Put a guest under work."""
    guest.transaction = Transaction(account.next_id(), group, account.now, duration_s)
    return guest.transaction


def step(transaction: Transaction, now: float) -> str:
    """The name of the step that a transaction is in; it stays in the last one until it is over."""
    steps = STEPS[transaction.group]
    share = (now - transaction.started) / transaction.duration_s if transaction.duration_s else 1.0
    return steps[min(len(steps) - 1, int(max(0.0, share) * len(steps)))]


def advance(account: Account) -> bool:
    """Let everything happen that is due and write it down, or nothing of it; tell whether something did."""
    try:
        ended = cancellation.end_due(account)
        due = [guest.id for guest in account.store.guests.look() if _is_due(account, guest)]
        for guest_id in due:
            _advance_guest(account, account.store.guests[guest_id])
        happened = any((ended, bool(due), volumes.advance(account)))
        if happened:
            account.store.flush()
    except BaseException:
        account.store.rollback()
        raise
    return happened


def next_moment(account: Account) -> float | None:
    """When the clock alone makes something happen next."""
    moments = [item.ends for item in cancellation.pending(account) if item.ends > account.now]
    moments += volumes.next_moments(account)
    for guest in account.store.guests.look():
        if guest.transaction:
            over = guest.transaction.started + guest.transaction.duration_s
            moments += [over] if over > account.now else []
        elif guest.upgrade:
            moments.append(guest.upgrade.starts)
    return min(moments, default=None)


def _is_due(account: Account, guest: Guest) -> bool:
    transaction = guest.transaction
    if transaction is None:
        upgrade = guest.upgrade is not None and guest.upgrade.starts <= account.now
        return upgrade or guest.cancelled is not None
    return account.now >= transaction.started + transaction.duration_s and _machine_is_done(account, guest)


def _advance_guest(account: Account, guest: Guest) -> None:
    transaction = guest.transaction
    if transaction is None:
        if guest.cancelled is not None:
            begin(account, guest, RECLAIM, account.settings.reclaim_s)
        else:
            _start_upgrade(account, guest)
        return
    transaction.ended = account.now
    guest.transaction, guest.last_transaction = None, transaction
    _ENDINGS[transaction.group](account, guest)


def _machine_is_done(account: Account, guest: Guest) -> bool:
    if not account.waits_for_machines:
        return True
    return guest.machine_gone if guest.cancelled is not None else guest.boots_done >= guest.boots_wanted


def _start_upgrade(account: Account, guest: Guest) -> None:
    upgrade = guest.upgrade
    begin(account, guest, UPGRADE, account.settings.upgrade_s)
    flavour = account.catalogue.flavour(upgrade.preset_id) if upgrade.preset_id else None
    guest.flavour = flavour.key_name if flavour else guest.flavour
    for device, capacity in upgrade.disks.items():
        present = next((disk for disk in guest.disks if disk.device == device), None)
        if present:
            present.capacity_gb = capacity
        else:
            guest.disks.append(GuestDisk(account.next_id(), account.next_id(), device, capacity))
    guest.boots_wanted += 1


def _end_provision(account: Account, guest: Guest) -> None:
    guest.provisioned = account.now
    guest.modified = account.now


def _end_upgrade(account: Account, guest: Guest) -> None:
    upgrade, catalogue = guest.upgrade, account.catalogue
    guest.upgrade, guest.modified = None, account.now
    item = account.store.billing_items[guest.billing_item_id]
    for device, capacity in upgrade.disks.items():
        replace_fee(account, item, catalogue.disks[DISK_CATEGORIES[device - 1], capacity])
    if upgrade.port_speed is not None:
        for component in guest.components:
            component.max_speed = upgrade.port_speed
        replace_fee(account, item, catalogue.port_speeds[upgrade.port_speed, guest.public is None])
    if upgrade.preset_id:
        flavour = account.flavour_of(guest)
        item.flavour = flavour.key_name
        for price in flavour.prices:
            replace_fee(account, item, price)


def _end_reclaim(account: Account, guest: Guest) -> None:
    del account.store.guests[guest.id]
    networks.release(account)


def _end_restart(account: Account, guest: Guest) -> None:
    guest.modified = account.now


_ENDINGS = {
    PROVISION: _end_provision,
    UPGRADE: _end_upgrade,
    RECLAIM: _end_reclaim,
    RELOAD: _end_restart,
    DISK_CHANGE: _end_restart,
}
