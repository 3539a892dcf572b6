"""Cancelling billing items: at once, or when the paid month is over."""

from emulator.softlayer import networks
from emulator.softlayer.account import Account
from emulator.softlayer.dates import iso, next_anniversary
from emulator.softlayer.faults import public
from emulator.softlayer.records import BillingItem

NETWORK_VLAN = "network_vlan"
"""The category of a VLAN that a person ordered in the vendor's portal."""


def cancel(account: Account, item: BillingItem, *, immediate: bool) -> None:
    """Cancel a billing item: at once if it is hourly or ``immediate``, else on its anniversary."""
    if item.closed is not None:
        raise public(f"Billing item {item.id} is already cancelled.")
    if item.ends is not None:
        raise public(f"Billing item {item.id} is already cancelled: it is pending cancellation on {iso(item.ends)}.")
    if why := _forbidden(account, item):
        raise public(why)
    if immediate or item.hourly:
        _finish(account, item, account.now)
    else:
        item.ends = next_anniversary(item.opened, account.now)


def end_due(account: Account) -> bool:
    """Close items that reached their anniversary, unless a transaction runs; return whether any did."""
    ended = False
    for item in pending(account):
        if item.ends <= account.now and not _forbidden(account, item):
            _finish(account, account.store.billing_items[item.id], item.ends)
            ended = True
    return ended


def pending(account: Account) -> list[BillingItem]:
    """The billing items that are cancelled, but paid and usable until their anniversary."""
    return [item for item in account.store.billing_items.living() if item.ends is not None]


def _finish(account: Account, item: BillingItem, moment: float) -> None:
    """Close an item and end what it was for; the clock starts to reclaim a guest."""
    item.closed = moment
    if item.category == NETWORK_VLAN:
        del account.store.vlans[item.resource_id]
    elif item.resource_id in account.store.guests:
        guest = account.store.guests[item.resource_id]
        guest.cancelled = account.now
        guest.transaction = None  # One that has not started never does.


def _forbidden(account: Account, item: BillingItem) -> str | None:
    """The reason why an item cannot end now, as a sentence; None if it can."""
    if item.category == NETWORK_VLAN:
        return networks.cannot_end(account, item)
    guest = account.store.guests.read(item.resource_id)
    transaction = guest and guest.active(account.now)
    if transaction is None:
        return None
    text = f"transaction {transaction.id} ({transaction.group}) is active. {guest.machine_error or ''}"
    return f"Virtual guest {guest.id} cannot be cancelled while {text}".strip()
