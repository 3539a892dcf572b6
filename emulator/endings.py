"""Ending what is billed: each kind of thing has its own way, and its own reasons why it cannot end yet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from . import guests
from .account import Account
from .faults import public
from .records import BillingItem


@dataclass(frozen=True)
class Ending:
    """How one kind of thing ends."""

    refusal: Callable[[Account, int], str | None]
    end: Callable[[Account, int], None]


def refuse(account: Account, item: BillingItem) -> None:
    """Refuse the cancellation of what cannot end now."""
    reason = ENDINGS[item.what].refusal(account, item.thing_id)
    if reason:
        raise public(reason)


def end(account: Account, item: BillingItem) -> None:
    """Close the charge and let the thing go."""
    refuse(account, item)
    ENDINGS[item.what].end(account, item.thing_id)


ENDINGS = {
    "guest": Ending(
        refusal=lambda account, guest_id: guests.why_not_cancelled(account.store.guests[guest_id]),
        end=lambda account, guest_id: guests.cancel(account, account.store.guests[guest_id]),
    ),
}
