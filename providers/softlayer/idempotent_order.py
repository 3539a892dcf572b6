"""Sending the one call that costs money: its intent is on the disk before it, its outcome right after it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from providers.rental import clock
from providers.rental import owner_mark as marks
from providers.rental.errors import OrderWithoutId, ProviderError, WaitError
from providers.rental.journal import Intent, Journal, digest
from providers.rental.operation import Operation
from providers.rental.waiting import Pending, wait_until
from providers.softlayer import claim, order_status
from providers.softlayer.account import Account
from providers.softlayer.calls import LONGEST_CALL_S
from providers.softlayer.errors import ApiError

LISTS_LAG_S = 120.0
"""Lists may lag this far behind an accepted order."""
SETTLED_S = LISTS_LAG_S + LONGEST_CALL_S
"""So long after its call has ended whatever an order made is in the lists; one call more, as a gateway may hold it back."""
ORDER_ATTEMPTS = 3
PAUSE_S = 5.0
"""Between two attempts, so that a rate limit has passed."""
ENGINE_GONE = "engine gone"
NOT_ARRIVED = "not arrived"
ORDER_MASK = "mask[id,status]"
_FIRST_READ: dict[str, clock.Instant] = {}
"""When this process first read of an order whose end it cannot date."""


@dataclass(frozen=True)
class Wanted:
    """What an operation wants to have: looked for first, ordered only if it is certainly not there."""

    what: str
    """The subject of the sentences, for example ``guest gpu-0 of v100-1f3a9c42``."""
    mark: str
    kind: str
    look: Callable[[], Mapping[str, Any] | Pending | None]
    """Returns the living object, which has an ``id``; None if there is none; ``Pending`` while that is not certain."""
    prepare: Callable[[], tuple[Any, Callable[[], str]]]
    """Returns the content of the order, for the journal, and the call that sends it, once, and returns the id it made."""
    hostname: str | None = None
    is_unique: bool = False
    """Whether the account refuses a second one, so that a refusal may mean that a lagging list does not show the first."""
    advice: Callable[[ApiError], str | None] = lambda error: None
    """Returns the next step after a refusal that it knows."""
    key_ids: Sequence[str] | None = None
    """For what costs money: the ssh keys that its order names. Only one computer orders for a stack at a time."""


def obtain(op: Operation, account: Account, wanted: Wanted) -> Mapping[str, Any] | str:
    """Return the living object, to be adopted, or else the id of what was ordered now.

    Nothing is ordered while an earlier order may still turn up; an order that certainly made nothing is repeated.

    Raises:
        ProviderError: nothing was ordered, or nobody knows yet.
    """
    lost: ApiError | None = None
    for attempt in range(ORDER_ATTEMPTS + 1):
        found = resolve(op, account, wanted)
        if found is not None:
            return found
        if attempt == ORDER_ATTEMPTS or (lost and not lost.is_transient):
            break
        try:
            made = _order(op, account, wanted)
        except ApiError as error:
            lost = error
        else:
            if made is not None:
                return made
            continue
        if lost.is_transient:
            op.deadline.pause(PAUSE_S)
        elif wanted.is_unique and (there := _shown_late(op, wanted)):
            return there
    raise ProviderError(
        f"ordering {wanted.what}: {lost}. The account shows none, so nothing was ordered. "
        f"{(lost and wanted.advice(lost)) or _next_step(lost)}"
    ) from lost


def _shown_late(op: Operation, wanted: Wanted) -> Mapping[str, Any] | None:
    def look() -> Mapping[str, Any] | Pending:
        return wanted.look() or Pending("it was refused; looking whether the account has it already")

    try:
        return wait_until(wanted.what, look, op.deadline.within(LISTS_LAG_S), op.log.progress)
    except WaitError:
        return None


def _next_step(lost: ApiError | None) -> str:
    if lost is None or lost.is_transient:
        return "Run the command again."
    if lost.is_gone:
        return "Something that it names is gone: run 'pulumi up --refresh'."
    if lost.is_forbidden:
        return "Have this user granted the right, or use another one, and run the command again."
    return "Correct the stack file, or ask the vendor."


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
    except OrderWithoutId as error:
        journal.receipt(attempt, error.order_id)
        raise ApiError(str(error).partition(": ")[0], error.code, error.text) from error
    except ApiError as error:
        if error.is_ambiguous:
            journal.lost(attempt)
        else:
            journal.refused(attempt, error.code)
        raise
    except ProviderError:
        journal.refused(attempt, ENGINE_GONE)
        raise
    journal.ordered(attempt, made)
    return made


def resolve(op: Operation, account: Account, wanted: Wanted) -> Mapping[str, Any] | None:
    """Look for what is wanted; while an order for it is unresolved, go on looking until it must be in the lists."""
    journal = op.journal(wanted.mark)
    earlier = journal.unresolved(account.identity().account_id, op.name, wanted.kind)

    def seen() -> tuple[Mapping[str, Any] | None] | Pending:
        is_settled = unsettled_s(earlier, op.deadline.time_scale) == 0
        found = wanted.look()
        if found is None and not is_settled:
            return Pending(
                f"the answer to the order of {earlier[-1].at[:19]} UTC got lost; looking whether it was accepted"
            )
        return found if isinstance(found, Pending) else (found,)

    (found,) = wait_until(f"the order of {op.name}", seen, op.deadline, op.log.progress)
    for each in earlier:
        if found is None:
            give_up(account, journal, each)
        else:
            journal.ordered(each.attempt, str(found["id"]))
    return found


def give_up(account: Account, journal: Journal, intent: Intent) -> None:
    """Write that an order made nothing, as nothing of it can turn up any more.

    Raises:
        ProviderError: the account gave the order a number, has not refused it, and shows no end of what it made.
    """
    order = standing(account, journal.owner, intent) or _waiting(account, journal.owner, intent)
    if order is not None:
        raise ProviderError(
            f"ordering {intent.kind} {intent.name}: the account accepted it at {intent.at[:19]} UTC and shows nothing of it "
            f"since; {order_status.described(order)}. Nothing is ordered a second time while it stands. Ask the vendor what became "
            f"of order {order['id']}, or have it cancelled; then run the command again."
        )
    journal.refused(intent.attempt, NOT_ARRIVED)


def standing(account: Account, owner: marks.Owner, intent: Intent) -> order_status.Order | None:
    """Read the order that the account accepted for an intent; None if it gave it no number, or it is refused or over by now."""
    if not intent.order_id:
        return None
    # It was accepted, so that one which cannot be read is no refused one.
    order = account.api.find("Billing_Order", intent.order_id, ORDER_MASK) or {"id": intent.order_id}
    if order_status.is_refused(order) or order_status.is_over(order, account.bill_list.under(owner)):
        return None
    return order


def _waiting(account: Account, owner: marks.Owner, intent: Intent) -> order_status.Order | None:
    """Find an order of this name that waits for a person; nothing of it may be shown before it is approved."""
    if intent.hostname is None:
        return None
    listed = [each for each in account.order_list.under(owner) if order_status.names(each, intent.hostname)]
    return order_status.waiting_unshown(listed, account.guest_list.under(owner))


def _order(op: Operation, account: Account, wanted: Wanted) -> str | None:
    """Order it and return its id; None if the lists have to be looked at again before."""
    content, send = wanted.prepare()
    owner = marks.Owner(op.stack, wanted.mark)
    if wanted.key_ids is not None and not claim.is_held(op, account, owner, wanted.key_ids, SETTLED_S):
        return None
    account_id = account.identity().account_id
    intent = Intent(account_id, wanted.mark, op.name, wanted.kind, digest(content), wanted.hostname)
    return place(op, intent, send)


def fresh(op: Operation, account: Account, owner_mark: str, kind: str) -> dict[str, Intent]:
    """Return by its id what was ordered so recently that the account need not show it yet, and is not closed."""
    return _unsettled(op, op.journal(owner_mark).accepted(account.identity().account_id, kind))


def recent(op: Operation, account: Account, owner_mark: str, kind: str) -> dict[str, Intent]:
    """Return the same with what is closed: the account need not show yet what it has cost."""
    return _unsettled(op, op.journal(owner_mark).made(account.identity().account_id, kind))


def _unsettled(op: Operation, made: Mapping[str, Intent]) -> dict[str, Intent]:
    return {each: intent for each, intent in made.items() if unsettled_s([intent], op.deadline.time_scale) > 0}


def unsettled_s(intents: Sequence[Intent], time_scale: float) -> float:
    """Return how long, in unscaled seconds, what these orders made may still be missing from the lists."""
    return max([0.0, *(SETTLED_S - _over_s(each) / time_scale for each in intents)])


def _over_s(intent: Intent) -> float:
    """Return for how long the call of an order has certainly been over.

    Nobody knows when a killed process's call ended, nor how long ago another boot was: that counts from when we first read of it.
    """
    over = clock.since(intent.ended)
    if over is None:
        over = clock.since(_FIRST_READ.setdefault(intent.attempt, clock.now()))
    return over or 0.0
