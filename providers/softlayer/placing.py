"""Sending the one call that costs money: its intent is on the disk before it, its outcome right after it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

from providers.softlayer.account import Account
from providers.softlayer.errors import ApiError, ProviderError
from providers.softlayer.journal import Intent, digest
from providers.softlayer.session import Operation
from providers.softlayer.waiting import Pending, wait_until

Found = TypeVar("Found", bound=Mapping[str, Any])

LISTS_LAG_S = 120.0
"""Lists may lag this far behind an accepted order."""
LONGEST_CALL_S = 60.0
SETTLED_S = LISTS_LAG_S + LONGEST_CALL_S
"""So long after its intent whatever an order made is in the lists: the call itself may take as long as its time limit."""
ENGINE_GONE = "engine gone"
NOT_ARRIVED = "not arrived"


def place(op: Operation, intent: Intent, send: Callable[[], str]) -> str:
    """Send one paying call and return the id of what it made.

    Args:
        send: the call, sent once; it returns the id that stands in the journal.

    Raises:
        ApiError: if it ``is_ambiguous``, the intent stays unresolved and must be resolved by looking; else nothing was ordered.
    """
    journal = op.journal(intent.mark)
    attempt = journal.intend(intent).attempt
    try:
        op.before_order(f"{intent.kind} {intent.name}")
        made = send()
    except ApiError as error:
        if not error.is_ambiguous:
            journal.refused(attempt, error.code)
        raise
    except ProviderError:
        journal.refused(attempt, ENGINE_GONE)
        raise
    journal.ordered(attempt, made)
    return made


def intent(
    op: Operation, account: Account, owner_mark: str, *, kind: str, order: Any, hostname: str | None = None
) -> Intent:
    """Describe the order that the operation is about to send."""
    return Intent(account.identity().account_id, owner_mark, op.name, kind, digest(order), hostname)


def resolve(
    op: Operation, account: Account, owner_mark: str, kind: str, look: Callable[[], Found | Pending | None]
) -> Found | None:
    """Look for what the resource is; while an order for it is unresolved, go on looking until it must be in the lists.

    Args:
        look: returns the living object, which has an ``id``; None if there is none; ``Pending`` while that is not certain.
    """
    journal = op.journal(owner_mark)
    earlier = journal.unresolved(account.identity().account_id, op.name, kind)
    settled = (
        time.monotonic() + unsettled_s(earlier, datetime.now(UTC), op.patience.time_scale) * op.patience.time_scale
    )

    def seen() -> tuple[Found | None] | Pending:
        is_settled = time.monotonic() >= settled
        found = look()
        if found is None and not is_settled:
            return Pending(
                f"the answer to the order of {earlier[-1].at[:19]} UTC got lost; looking whether it was accepted"
            )
        return found if isinstance(found, Pending) else (found,)

    (found,) = wait_until(f"the order of {op.name}", seen, op.patience, op.log.progress)
    for each in earlier:
        if found is None:
            journal.refused(each.attempt, NOT_ARRIVED)
        else:
            journal.ordered(each.attempt, str(found["id"]))
    return found


def fresh(op: Operation, account: Account, owner_mark: str, kind: str) -> dict[str, Intent]:
    """Return by its id what was ordered so recently that the account need not show it yet."""
    now = datetime.now(UTC)
    made = op.journal(owner_mark).accepted(account.identity().account_id, kind)
    return {each: intent for each, intent in made.items() if unsettled_s([intent], now, op.patience.time_scale) > 0}


def unsettled_s(intents: Sequence[Intent], now: datetime, time_scale: float) -> float:
    """Return how long, in unscaled seconds, what these orders made may still be missing from the lists."""
    return max([0.0, *(SETTLED_S - each.age_s(now) / time_scale for each in intents)])
