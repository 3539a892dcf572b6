"""Send an order at most once: its intent is on the disk before it, its outcome right after it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from providers.rental import claim, clock
from providers.rental.backend import Backend, OrderRequest, OrderStatus, Thing
from providers.rental.errors import CallError, OrderWithoutId, ProviderError, WaitError
from providers.rental.journal import Intent, Journal, digest
from providers.rental.operation import Operation
from providers.rental.waiting import Pending, wait_until

ORDER_ATTEMPTS = 3
PAUSE_S = 5.0
"""Between two attempts, so that a rate limit has passed."""
ENGINE_GONE = "engine gone"
NOT_ARRIVED = "not arrived"
_FIRST_READ: dict[str, clock.Instant] = {}
"""When this process first read of an order whose end it cannot date."""


def adopt_or_order(op: Operation, backend: Backend, request: OrderRequest) -> Thing | str:
    """Return the living object, to be adopted, or order one and return its id.

    Nothing is ordered while an earlier order may still turn up; an order that certainly made nothing is repeated.

    Raises:
        ProviderError: nothing was ordered, or nobody knows yet.
    """
    lost: CallError | None = None
    for attempt in range(ORDER_ATTEMPTS + 1):
        found = reconcile(op, backend, request)
        if found is not None:
            return found
        if attempt == ORDER_ATTEMPTS or (lost and not _may_repeat(backend, lost)):
            break
        try:
            order = backend.prepare(request)
            if request.key_ids is not None and not claim.is_held(op, backend, request, settled_s(backend)):
                continue
            op.log.progress("ordering")
            return submit(op, backend, request, order)
        except CallError as error:
            lost = error
        if _may_repeat(backend, lost):
            op.deadline.pause(PAUSE_S)
        elif request.is_unique and (there := _find_late(op, backend, request)):
            return there
    raise ProviderError(
        f"ordering {request.what}: {lost}. The account shows none, so nothing was ordered. "
        f"{_next_step(backend, request, lost)}"
    ) from lost


def submit(op: Operation, backend: Backend, request: OrderRequest, order: Any) -> str:
    """Send one order, exactly once, and return the id of what it makes.

    Raises:
        CallError: if the backend does not know it for a refusal, the intent stays unresolved, for ``reconcile``.
    """
    journal = op.journal(request.owner.mark)
    intent = Intent(
        backend.identity().account_id,
        request.owner.mark,
        op.name,
        request.kind,
        digest(order.content),
        request.hostname,
    )
    attempt = journal.intend(intent).attempt
    try:
        op.before_order(f"{intent.kind} {intent.name}")
        made = backend.order(order)
    except OrderWithoutId as error:
        journal.receipt(attempt, error.order_id)
        raise
    except CallError as error:
        if backend.is_refusal(error):
            journal.refused(attempt, error.code)
        else:
            journal.lost(attempt)
        raise
    except ProviderError:
        journal.refused(attempt, ENGINE_GONE)
        raise
    journal.ordered(attempt, made)
    return made


def reconcile(op: Operation, backend: Backend, request: OrderRequest) -> Thing | None:
    """Look for what is requested; while an order for it is unresolved, go on until the lists must show what it made."""
    journal = op.journal(request.owner.mark)
    earlier = journal.unresolved(backend.identity().account_id, op.name, request.kind)

    def look() -> tuple[Thing | None] | Pending:
        is_settled = unsettled_s(earlier, settled_s(backend), op.deadline.time_scale) == 0
        found = backend.look(op, request)
        if found is None and not is_settled:
            return Pending(
                f"the answer to the order of {earlier[-1].at[:19]} UTC got lost; looking whether it was accepted"
            )
        return found if isinstance(found, Pending) else (found,)

    (found,) = wait_until(f"the order of {op.name}", look, op.deadline, op.log.progress)
    for each in earlier:
        if found is None:
            mark_failed(backend, journal, each)
        else:
            journal.ordered(each.attempt, found.id)
    return found


def mark_failed(backend: Backend, journal: Journal, intent: Intent) -> None:
    """Write that an order made nothing, as nothing of it can turn up any more.

    Raises:
        ProviderError: the account gave the order a number, has not refused it, and shows no end of what it made.
    """
    order = standing(backend, journal, intent)
    if order is None and intent.hostname is not None:
        order = backend.waiting_order(journal.owner, intent.hostname)
    if order is not None:
        raise ProviderError(
            f"ordering {intent.kind} {intent.name}: the account accepted it at {intent.at[:19]} UTC and shows nothing of it "
            f"since; {order.described}. Nothing is ordered a second time while it stands. Ask the vendor what became "
            f"of order {order.id}, or have it cancelled; then run the command again."
        )
    journal.refused(intent.attempt, NOT_ARRIVED)


def standing(backend: Backend, journal: Journal, intent: Intent) -> OrderStatus | None:
    """Read the order that the account accepted for an intent; None if it gave it no number, or the order is over."""
    return backend.order_status(intent.order_id, journal.owner) if intent.order_id else None


def settled_s(backend: Backend) -> float:
    """Return how long after its call has ended whatever an order made is in the lists.

    One call longer than the lists lag, as a gateway may hold a call back.
    """
    return backend.lists_lag_s + backend.longest_call_s


def within_lag(op: Operation, backend: Backend, made: Mapping[str, Intent]) -> dict[str, Intent]:
    """Choose what was ordered so recently that the account need not show it yet."""
    settle_s, scale = settled_s(backend), op.deadline.time_scale
    return {each: intent for each, intent in made.items() if unsettled_s([intent], settle_s, scale) > 0}


def fresh(op: Operation, backend: Backend, owner_mark: str, kind: str) -> dict[str, Intent]:
    """Return by its id what was ordered within the lists' lag and is not closed."""
    return within_lag(op, backend, op.journal(owner_mark).accepted(backend.identity().account_id, kind))


def fresh_until(op: Operation, backend: Backend, owner_mark: str, kind: str, object_id: str) -> float:
    """Return until which moment of ``time.monotonic`` the account need not show what was ordered; 0 if it must by now."""
    intent = fresh(op, backend, owner_mark, kind).get(object_id)
    if intent is None:
        return 0.0
    scale = op.deadline.time_scale
    return time.monotonic() + unsettled_s([intent], settled_s(backend), scale) * scale


def unsettled_s(intents: Sequence[Intent], settle_s: float, time_scale: float) -> float:
    """Return how long, in unscaled seconds, what these orders made may still be missing from the lists."""
    return max([0.0, *(settle_s - _over_s(each) / time_scale for each in intents)])


def _over_s(intent: Intent) -> float:
    """Return for how long the call of an order has certainly been over.

    Nobody knows when a killed process's call ended, nor how long ago another boot was: that counts from when we first read of it.
    """
    over = clock.since(intent.ended)
    if over is None:
        over = clock.since(_FIRST_READ.setdefault(intent.attempt, clock.now()))
    return over or 0.0


def _may_repeat(backend: Backend, lost: CallError) -> bool:
    return isinstance(lost, OrderWithoutId) or backend.is_transient(lost)


def _find_late(op: Operation, backend: Backend, request: OrderRequest) -> Thing | None:
    def look() -> Thing | Pending:
        return backend.look(op, request) or Pending("it was refused; looking whether the account has it already")

    try:
        return wait_until(request.what, look, op.deadline.within(backend.lists_lag_s), op.log.progress)
    except WaitError:
        return None


def _next_step(backend: Backend, request: OrderRequest, lost: CallError | None) -> str:
    if lost is None or _may_repeat(backend, lost):
        return "Run the command again."
    return backend.advice(request, lost) or "Correct the stack file, or ask the vendor."
