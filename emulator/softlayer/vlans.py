"""VLANs: their names, their guests, and the cancellation of one that was ordered."""

from emulator.softlayer.account import Account
from emulator.softlayer.faults import public
from emulator.softlayer.records import BillingItem, Guest, Vlan

NAME_LENGTH = 20


def checked_name(name: str) -> str:
    """A name that a VLAN may have."""
    if len(name) > NAME_LENGTH:
        raise public(f"The name of a VLAN may have {NAME_LENGTH} characters; '{name}' has {len(name)}.")
    return name


def guests_on(account: Account, vlan: Vlan) -> list[Guest]:
    """The guests with an interface on a VLAN, also those that are being reclaimed."""
    every = account.store.guests.read_all()
    return [guest for guest in every if any(component.vlan_id == vlan.id for component in guest.components)]


def failure_reasons(account: Account, vlan: Vlan) -> list[str]:
    """Why a VLAN cannot be cancelled: the guests on it."""
    return [f"Virtual guest {guest.id} ({guest.name}) is on VLAN {vlan.id}." for guest in guests_on(account, vlan)]


def cannot_end(account: Account, item: BillingItem) -> str | None:
    """Why a VLAN cannot be cancelled now, as a sentence."""
    return " ".join(failure_reasons(account, account.store.vlans[item.resource_id])) or None


def end(account: Account, item: BillingItem) -> None:
    """Remove a VLAN."""
    del account.store.vlans[item.resource_id]
