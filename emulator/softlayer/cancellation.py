"""Cancelling billing items: at once, or when the paid month is over."""

from collections.abc import Callable
from dataclasses import dataclass

from emulator.softlayer import billing, networks
from emulator.softlayer.account import Account
from emulator.softlayer.dates import iso, next_anniversary
from emulator.softlayer.faults import public
from emulator.softlayer.records import BillingItem

VOLUME, VLAN = "volume", "vlan"  # what people order in the vendor's portal


@dataclass(frozen=True)
class Ending:
    """How one kind of resource ends: why it cannot end now, if so, and what removes it."""

    forbidden: Callable[[Account, BillingItem], str | None]
    end: Callable[[Account, BillingItem], None]


def cancel(account: Account, item: BillingItem, *, immediate: bool) -> None:
    """Cancel a billing item: at once if it is hourly or ``immediate``, else on its anniversary."""
    if item.closed is not None:
        raise public(f"Billing item {item.id} is already cancelled.")
    if item.ends is not None:
        raise public(f"Billing item {item.id} is already cancelled: it is pending cancellation on {iso(item.ends)}.")
    forbidden = ENDINGS[item.kind].forbidden(account, item)
    if forbidden:
        raise public(forbidden)
    if immediate or item.hourly:
        _finish(account, item, account.now)
    else:
        item.ends = next_anniversary(item.opened, account.now)


def end_due(account: Account) -> bool:
    """Close items that reached their anniversary, unless a transaction runs; return whether any did."""
    due = [item for item in pending(account) if item.ends <= account.now]
    free = [item for item in due if not ENDINGS[item.kind].forbidden(account, item)]
    for item in free:
        _finish(account, account.store.billing_items[item.id], item.ends)
    return bool(free)


def pending(account: Account) -> list[BillingItem]:
    """The billing items that are cancelled, but paid and usable until their anniversary."""
    return [item for item in account.store.billing_items.living() if item.ends is not None and item.closed is None]


def _finish(account: Account, item: BillingItem, moment: float) -> None:
    billing.close(item, moment)
    ENDINGS[item.kind].end(account, item)


def _busy_guest(account: Account, item: BillingItem) -> str | None:
    guest = account.store.guests.read(item.resource_id)
    if guest is None or guest.transaction is None:
        return None
    text = f"transaction {guest.transaction.id} ({guest.transaction.group}) is active. {guest.machine_error or ''}"
    return f"Virtual guest {guest.id} cannot be cancelled while {text}".strip()


def _end_guest(account: Account, item: BillingItem) -> None:
    """Mark the guest cancelled; the clock starts to reclaim it."""
    account.store.guests[item.resource_id].cancelled = account.now


def _end_vlan(account: Account, item: BillingItem) -> None:
    del account.store.vlans[item.resource_id]


ENDINGS: dict[str, Ending] = {
    "guest": Ending(_busy_guest, _end_guest),
    VOLUME: Ending(lambda account, item: None, lambda account, item: None),
    VLAN: Ending(networks.cannot_end, _end_vlan),
}
