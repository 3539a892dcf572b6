"""Find out what became of orders: by the account's things, and by the journal while lists lag."""

import time
from collections.abc import Mapping, Sequence
from datetime import datetime

from providers.rental import waiting
from providers.rental.backend import Backend, OrderRequest, OrderStatus, Thing
from providers.rental.errors import ProviderError
from providers.rental.journal import Intent, Journal
from providers.rental.operation import Operation
from providers.rental.owner_mark import Owner
from providers.rental.waiting import Pending, wait_until

NOT_ARRIVED = "not arrived"
STANDING_S = 600.0
"""So much longer than lists may lag is waited for a machine of which the account shows the order or the charge alone."""
_FIRST_READ: dict[str, waiting.Instant] = {}
"""When this process first read of an order whose end it cannot date."""


def reconcile(op: Operation, backend: Backend, request: OrderRequest, *, gives_up: bool = True) -> Thing | None:
    """Look for what is requested; while an order for it is unresolved, go on until the lists must show what it made.

    Args:
        gives_up: whether an order of which the account shows nothing is written down as failed, so that it may be sent again.

    Raises:
        ProviderError: the account shows that something was ordered, and for too long not the machine itself.
    """
    journal, scale = op.journal(request.owner.mark), op.deadline.time_scale
    earlier = journal.unresolved(backend.identity().account_id, op.name, request.kind)
    ends = time.monotonic() + (unsettled_s(earlier, settled_s(backend), scale) + STANDING_S) * scale

    def look() -> tuple[Thing | None] | Pending:
        is_settled = unsettled_s(earlier, settled_s(backend), scale) == 0
        found = look_once(op, backend, request)
        if found is not None:
            return found if isinstance(found, Pending) else (found,)
        if not is_settled:
            return Pending(
                f"the answer to the order of {earlier[-1].at[:19]} UTC got lost; looking whether it was accepted"
            )
        trace = evidence(backend, request.owner, request.hostname, earlier)
        if trace is None:
            return (None,)
        if time.monotonic() > ends:
            raise ProviderError(_standing(f"{request.kind} {request.name}", trace))
        return Pending(f"{trace}, and the account does not show what was ordered")

    (found,) = wait_until(f"the order of {op.name}", look, op.deadline, op.log.progress)
    for each in earlier:
        if found is not None:
            journal.ordered(each.attempt, found.id)
        elif gives_up:
            journal.refused(each.attempt, NOT_ARRIVED)
    return found


def look_once(op: Operation, backend: Backend, request: OrderRequest) -> Thing | Pending | None:
    """Return the living thing that is requested; ``Pending`` while one may exist that the account does not show.

    Lists lag behind orders and cancellations: which ids to look at comes from list and journal, what they are from themselves.
    """
    if not request.is_named:
        return backend.look(op, request)
    journal, account_id = op.journal(request.owner.mark), backend.identity().account_id
    accepted = journal.accepted(account_id, request.kind)
    # What the journal does not know, another computer may have ordered only now.
    settled = set(journal.made(account_id, request.kind)) - set(within_lag(op, backend, accepted))
    listed = [each for each in backend.list(request.kind, request.owner) if each.name == request.name]
    for each in listed:
        backend.check_visible(each)
    ids = {each.id for each in listed if each.is_alive and each.owner == request.owner}
    ids |= {each for each, intent in accepted.items() if _is_for(op, request, intent)}
    found: dict[str, Thing | Pending | None] = {}
    for each in sorted(ids):
        found[each] = backend.find(request.kind, each, request.owner, fresh=each not in settled)
        if found[each] is None:
            journal.closed(account_id, request.kind, each)
    living = [each for each in found.values() if isinstance(each, Thing) and _fits(request, each)]
    if len(living) > 1:
        raise ProviderError(
            f"ordering {request.what}: the account has several living ones of this name and mark: "
            f"{', '.join(each.label for each in living)}. Nothing was touched; cancel the ones that are too many."
        )
    uncertain = [each for each in found.values() if isinstance(each, Pending)]
    return next(iter([*living, *uncertain]), None)


def mark_failed(backend: Backend, journal: Journal, intent: Intent) -> None:
    """Write that an order made nothing, as nothing of it can turn up any more.

    Raises:
        ProviderError: the account shows that it was accepted, and no end of what it made.
    """
    trace = evidence(backend, journal.owner, intent.hostname, [intent])
    if trace is not None:
        raise ProviderError(_standing(f"{intent.kind} {intent.name}", trace))
    journal.refused(intent.attempt, NOT_ARRIVED)


def evidence(backend: Backend, owner: Owner, hostname: str | None, intents: Sequence[Intent]) -> str | None:
    """Say what shows that one of these orders was accepted, or that a machine of this name is billed; None if nothing does."""
    orders = [order for each in intents if (order := standing(backend, owner, each))]
    if orders or hostname is None:
        return orders[0].described if orders else None
    oldest = min((datetime.fromisoformat(each.at) for each in intents), default=None)
    return backend.unshown(owner, hostname, oldest)


def standing(backend: Backend, owner: Owner, intent: Intent) -> OrderStatus | None:
    """Read the order that the account accepted for an intent; None if it gave it no number, or the order is over."""
    return backend.order_status(intent.order_id, owner) if intent.order_id else None


def _standing(what: str, trace: str) -> str:
    return (
        f"ordering {what}: the account does not show what was ordered, but {trace}. Nothing is ordered a second time while "
        "that stands. Ask the vendor what became of it, or have it cancelled; then run the command again."
    )


def settled_s(backend: Backend) -> float:
    """Return how long after its caller has left whatever an order made is in the lists: the account may still be at work."""
    return backend.lists_lag_s + backend.longest_call_s


def within_lag(op: Operation, backend: Backend, made: Mapping[str, Intent]) -> dict[str, Intent]:
    """Choose what was ordered so recently that the account need not show it yet."""
    settle_s, scale = settled_s(backend), op.deadline.time_scale
    return {each: intent for each, intent in made.items() if unsettled_s([intent], settle_s, scale) > 0}


def fresh(op: Operation, backend: Backend, owner_mark: str, kind: str) -> dict[str, Intent]:
    """Return by its id what was ordered within the lists' lag and is not closed."""
    return within_lag(op, backend, op.journal(owner_mark).accepted(backend.identity().account_id, kind))


def fresh_until(op: Operation, backend: Backend, owner_mark: str, kind: str, object_id: str) -> float:
    """Return until which moment of ``time.monotonic`` the account need not show what was ordered; 0 if it must by now.

    Args:
        owner_mark: empty in an import, which has nothing that could be fresh.
    """
    intent = fresh(op, backend, owner_mark, kind).get(object_id) if owner_mark else None
    if intent is None:
        return 0.0
    scale = op.deadline.time_scale
    return time.monotonic() + unsettled_s([intent], settled_s(backend), scale) * scale


def certain(op: Operation, backend: Backend, owner: Owner, kind: str, object_id: str) -> Thing | None:
    """Look until it is certain whether a thing exists: forgetting one that was ordered only now would order it twice.

    Raises:
        WaitError: nobody can know yet.
    """
    until = fresh_until(op, backend, owner.mark, kind, object_id)

    def look() -> tuple[Thing | None] | Pending:
        found = backend.find(kind, object_id, owner, fresh=time.monotonic() < until)
        return found if isinstance(found, Pending) else (found,)

    what = f"certainty about {backend.machine_label if kind == backend.machine else kind} {object_id}"
    return wait_until(what, look, op.deadline.within(2 * settled_s(backend)), op.log.progress)[0]


def unsettled_s(intents: Sequence[Intent], settle_s: float, time_scale: float) -> float:
    """Return how long, in unscaled seconds, what these orders made may still be missing from the lists."""
    return max([0.0, *(settle_s - _over_s(each) / time_scale for each in intents)])


def _over_s(intent: Intent) -> float:
    """Return for how long the call of an order has certainly been over.

    Nobody knows when a killed process's call ended, nor how long ago another boot was: that counts from when we first read of it.
    """
    over = waiting.since(intent.ended)
    if over is None:
        over = waiting.since(_FIRST_READ.setdefault(intent.attempt, waiting.now()))
    return over or 0.0


def _is_for(op: Operation, request: OrderRequest, intent: Intent) -> bool:
    return intent.hostname == request.hostname if request.hostname else intent.name == op.name


def _fits(request: OrderRequest, thing: Thing) -> bool:
    """Filters of the account are checked again here: one that it ignores returns everybody's things."""
    return thing.is_alive and thing.name == request.name and thing.owner == request.owner
