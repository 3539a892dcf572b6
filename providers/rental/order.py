"""An operation of the provider, and how it sends an order at most once, and from one computer only.

Its intent is on the disk before it is sent, its outcome right after. A lost answer is resolved by looking: in the account, and in the
journal while lists lag.

The claim names the journal that orders for a stack, in the account itself. Another name there reveals another computer, or a
journal that was lost: then nothing is ordered before all that was ordered is in the lists.
"""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from core.home import Owner
from providers.rental import waiting
from providers.rental.account import Claim, Found, Market, OrderRequest, OrderStatus, Resource
from providers.rental.errors import CallError, EngineGoneError, OrderWithoutId, ProviderError, WaitError
from providers.rental.journal import Intent, Journal, digest
from providers.rental.waiting import Deadline, Pending, Tell, now, since, wait_until

ORDER_ATTEMPTS = 3
PAUSE_S = 5.0
"""Between two attempts, so that a rate limit has passed."""
ENGINE_GONE = "engine gone"
CLAIM_KNOWN_FOR_S = 10.0
"""Orders that are sent within so long of each other share one look at the claim."""
NOT_ARRIVED = "not arrived"
STANDING_S = 600.0
"""So much longer than lists may lag is waited for a machine of which the account shows the order or the charge alone."""
_FIRST_READ: dict[str, waiting.Instant] = {}
"""When this process first read of an order whose end it cannot date."""


@dataclass(frozen=True)
class Log:
    """What a person sees of one resource while an operation runs."""

    info: Tell
    """Keeps a message under the resource in the command's summary."""
    progress: Tell
    """Shows what is going on right now."""
    warn: Tell


class Session:
    """The account of this provider process, opened with the first call that needs it."""

    def __init__(self, open_account: Callable[[], Market], time_scale: float, stop: threading.Event) -> None:
        self.time_scale = time_scale
        self.stop = stop
        self.claim_lock = threading.Lock()
        self.claimed: dict[Owner, float] = {}
        """The stacks for which this process may order, and when it had waited for the lists."""
        self.secrets: tuple[str, ...] = ()
        self._open = open_account
        self._lock = threading.Lock()
        self._market: Market | None = None

    def market(self) -> Any:
        """Open the account, or return the open one; after a failure the next operation tries again."""
        with self._lock:
            if self._market is None:
                market = self._open()
                self.secrets = market.secrets
                market.whoami()
                self._market = market
            return self._market


@dataclass(frozen=True)
class Operation:
    """One operation on one resource."""

    urn: str
    session: Session
    deadline: Deadline
    log: Log
    engine_lives: Callable[[], bool] = lambda: True

    @property
    def stack(self) -> str:
        """The stack's name, from the URN."""
        return self.urn.split("::")[0].removeprefix("urn:pulumi:")

    @property
    def name(self) -> str:
        """The resource's logical name, from the URN."""
        return self.urn.rsplit("::", 1)[-1]

    def market(self, recorded_id: str | None = None) -> Any:
        """Open the account, and refuse when the state was written for another one."""
        market = self.session.market()
        live = market.whoami()
        if recorded_id and recorded_id != live.account_id:
            raise ProviderError(
                f"working on {self.name}: the state belongs to account {recorded_id}, the key is for account "
                f"{live.account_id} ({live.username} at {live.endpoint}). Use the first account's key, nothing was touched."
            )
        return market

    def journal(self, owner_mark: str) -> Journal:
        """Return the journal of the stack and the mark."""
        return Journal(self.stack, owner_mark)

    def before_order(self, what: str) -> None:
        """Refuse to order anything for an engine that is gone or has asked to stop."""
        if not self.engine_lives() or self.session.stop.is_set():
            raise EngineGoneError(
                f"ordering {what}: the engine is gone or stops, so nothing was ordered. Run the command again."
            )


def adopt_or_order(op: Operation, market: Market, request: OrderRequest) -> Resource | str:
    """Return the living object, to be adopted, or order one and return its id.

    Nothing is ordered while an earlier order may still turn up. An order that certainly made nothing is repeated; one whose
    answer got lost is looked for, and where it costs money only the next command may send it again.

    Raises:
        ProviderError: nothing was ordered, or nobody knows yet.
    """
    failure: CallError | None = None
    is_lost = False
    for attempt in range(ORDER_ATTEMPTS + 1):
        found = reconcile(op, market, request, gives_up=not is_lost)
        if found is not None:
            return found
        if attempt == ORDER_ATTEMPTS or is_lost or (failure and not _may_repeat(failure)):
            break
        try:
            order = request.write()
            if request.is_billed and not _hold_claim(op, market, request):
                continue
            op.log.progress("ordering")
            return submit(op, market, request, order)
        except CallError as error:
            failure = error
        is_lost = request.is_billed and _is_unresolved(op, market, request)
        if _may_repeat(failure):
            op.deadline.pause(PAUSE_S)
        elif request.is_unique and (there := _find_late(op, market, request)):
            return there
    raise ProviderError(
        f"ordering {request.what}: {failure}. The account shows none, so nothing was ordered. "
        f"{_next_step(market, request, failure)}"
    ) from failure


def submit(op: Operation, market: Market, request: OrderRequest, order: Any) -> str:
    """Send one order, exactly once, and return the id of what it makes.

    Raises:
        CallError: unless it is a refusal, the intent stays unresolved, for ``reconcile``.
    """
    journal, account_id = op.journal(request.owner.mark), market.whoami().account_id
    content = digest({"kind": request.kind, "name": request.name, "content": request.content})
    intent = Intent(account_id, request.owner.mark, op.name, request.kind, content, request.hostname)
    attempt = journal.intend(replace(intent, sold=request.sold, called=request.name)).attempt
    try:
        op.before_order(f"{intent.kind} {intent.name}")
        made = market.order(order)
    except OrderWithoutId as error:
        journal.receipt(attempt, error.order_id)
        raise
    except CallError as error:
        if error.is_refusal:
            journal.refused(attempt, error.code)
        else:
            journal.lost(attempt)
        raise
    except ProviderError:
        journal.refused(attempt, ENGINE_GONE)
        raise
    journal.ordered(attempt, made)
    return made


def _hold_claim(op: Operation, market: Market, request: OrderRequest) -> bool:
    """Make sure, right before an order, that this journal alone orders for the stack.

    Returns:
        False if it had to wait for the lists, so that they have to be looked at again.

    Raises:
        ProviderError: another computer has begun to order for the stack since this one did.
    """
    asked, owner, ours = time.monotonic(), request.owner, op.journal(request.owner.mark).identity()
    with op.session.claim_lock:
        known_s = CLAIM_KNOWN_FOR_S * op.deadline.time_scale
        claim = market.claim(owner, key_ids=request.key_ids, max_age_s=known_s) or market.make_claim(op, owner)
        if claim is None:
            return True  # Nothing of the stack was ever there, so nobody has ordered for it.
        if claim.journal == ours:
            waited_at = op.session.claimed.setdefault(owner, float("-inf"))
            # Whoever looked at the lists before another thread had waited for them looks again.
            return waited_at <= asked
        if owner in op.session.claimed:
            raise ProviderError(_taken(op, claim))
        _take_over(op, market, request, claim, ours)
        op.session.claimed[owner] = time.monotonic()
        return False


def _take_over(op: Operation, market: Market, request: OrderRequest, claim: Claim, ours: str) -> None:
    """Write our journal's name, and wait until whatever another computer ordered is in the lists."""
    market.write_claim(replace(claim, journal=ours), request.owner)
    # Who looked at the claim just before may send its order until then.
    settle_s = (CLAIM_KNOWN_FOR_S + market.settled_s) * op.deadline.time_scale
    op.log.info(
        f"The account has this stack's claim {claim.object_id}, and this computer's journal did not order with it last: "
        f"another computer did, or the journal was lost. Waits {settle_s:.0f} s, once, until whatever was ordered is in the "
        "account's lists."
    )
    began = now()

    def look() -> bool | Pending:
        return (since(began) or 0.0) > settle_s or Pending(f"the first order waits {settle_s:.0f} s for the lists")

    wait_until("the account's lists", look, op.deadline, op.log.progress)
    after = market.claim(request.owner, key_ids=[claim.object_id])
    if after is None or after.journal != ours:
        raise ProviderError(_taken(op, after or claim))


def _taken(op: Operation, claim: Claim) -> str:
    return (
        f"ordering for {op.name}: another computer orders for stack {op.stack} now (claim {claim.object_id} names its "
        f"journal, {claim.journal}). Nothing was ordered from here. Let that one end, and run the command again."
    )


def _is_unresolved(op: Operation, market: Market, request: OrderRequest) -> bool:
    """Tell whether nobody knows what became of an order that was sent."""
    journal = op.journal(request.owner.mark)
    return bool(journal.unresolved(market.whoami().account_id, op.name, request.kind))


def _may_repeat(failure: CallError) -> bool:
    return isinstance(failure, OrderWithoutId) or failure.is_transient


def _find_late(op: Operation, market: Market, request: OrderRequest) -> Resource | None:
    def look() -> Resource | Pending:
        found = look_once(op, market, request)
        return found or Pending("it was refused; looking whether the account has it already")

    try:
        return wait_until(request.what, look, op.deadline.within(market.lists_lag_s), op.log.progress)
    except WaitError:
        return None


def _next_step(market: Market, request: OrderRequest, failure: CallError | None) -> str:
    if failure is None or _may_repeat(failure):
        return "Run the command again."
    return request.advice(failure) or "Correct the stack file, or ask the vendor."


def reconcile(op: Operation, market: Market, request: OrderRequest, *, gives_up: bool = True) -> Resource | None:
    """Look for what is requested; while an order for it is unresolved, go on until the lists must show what it made.

    Args:
        gives_up: whether an order of which the account shows nothing is written down as failed, so that it may be sent again.

    Raises:
        ProviderError: the account shows that something was ordered, and for too long not the machine itself.
    """
    journal, scale = op.journal(request.owner.mark), op.deadline.time_scale
    earlier = journal.unresolved(market.whoami().account_id, op.name, request.kind)
    ends = time.monotonic() + (unsettled_s(earlier, market.settled_s, scale) + STANDING_S) * scale

    def look() -> tuple[Resource | None] | Pending:
        is_settled = unsettled_s(earlier, market.settled_s, scale) == 0
        found = look_once(op, market, request)
        if found is not None:
            return found if isinstance(found, Pending) else (found,)
        if not is_settled:
            return Pending(
                f"the answer to the order of {earlier[-1].at[:19]} UTC got lost; looking whether it was accepted"
            )
        trace = evidence(market, request.owner, request.hostname, earlier)
        if trace is None:
            return (None,)
        if time.monotonic() > ends:
            raise ProviderError(standing(f"{request.kind} {request.name}", trace))
        return Pending(f"{trace.described}, and the account does not show what was ordered")

    (found,) = wait_until(f"the order of {op.name}", look, op.deadline, op.log.progress)
    for each in earlier:
        if found is not None:
            journal.ordered(each.attempt, found.id)
        elif gives_up:
            journal.refused(each.attempt, NOT_ARRIVED)
    return found


def look_once(op: Operation, market: Market, request: OrderRequest) -> Found:
    """Return the living thing that is requested; ``Pending`` while one may exist that the account does not show.

    Lists lag behind orders and cancellations: which ids to look at comes from list and journal, what they are from themselves.
    """
    if request.look is not None:
        return request.look()
    journal, account_id = op.journal(request.owner.mark), market.whoami().account_id
    accepted = journal.accepted(account_id, request.kind)
    # What the journal does not know, another computer may have ordered only now.
    settled = set(journal.made(account_id, request.kind)) - set(within_lag(op, market, accepted))
    listed = [each for each in market.resources(request.owner, request.kind) if each.called == request.name]
    ids = {each.id for each in listed if each.is_alive and each.owner == request.owner}
    ids |= {each for each, intent in accepted.items() if _is_for(op, request, intent)}
    found: dict[str, Resource | Pending | None] = {}
    for each in sorted(ids):
        found[each] = market.find(request.kind, each, request.owner, fresh=each not in settled)
        if found[each] is None:
            journal.closed(account_id, request.kind, each)
    living = [each for each in found.values() if isinstance(each, Resource) and _fits(request, each)]
    if len(living) > 1:
        raise ProviderError(
            f"ordering {request.what}: the account has several living ones of this name and mark: "
            f"{', '.join(each.described for each in living)}. Nothing was touched; cancel the ones that are too many."
        )
    uncertain = [each for each in found.values() if isinstance(each, Pending)]
    return next(iter([*living, *uncertain]), None)


def evidence(market: Market, owner: Owner, hostname: str | None, intents: Sequence[Intent]) -> OrderStatus | None:
    """Find what shows that one of these orders was accepted, or that a machine of this name is billed; None if nothing does."""
    oldest = min((datetime.fromisoformat(each.at) for each in intents), default=None)
    return market.standing(owner, hostname, oldest, [each.order_id for each in intents if each.order_id])


def standing(what: str, trace: OrderStatus) -> str:
    return (
        f"ordering {what}: the account does not show what was ordered, but {trace.described}. Nothing is ordered a second time while "
        "that stands. Ask the vendor what became of it, or have it cancelled; then run the command again."
    )


def within_lag(op: Operation, market: Market, made: Mapping[str, Intent]) -> dict[str, Intent]:
    """Choose what was ordered so recently that the account need not show it yet."""
    settle_s, scale = market.settled_s, op.deadline.time_scale
    return {each: intent for each, intent in made.items() if unsettled_s([intent], settle_s, scale) > 0}


def fresh_until(op: Operation, market: Market, owner_mark: str, kind: str, object_id: str) -> float:
    """Return until which moment of ``time.monotonic`` the account need not show what was ordered; 0 if it must by now.

    Args:
        owner_mark: empty in an import, which has nothing that could be fresh.
    """
    if not owner_mark:
        return 0.0
    ordered = op.journal(owner_mark).accepted(market.whoami().account_id, kind)
    scale = op.deadline.time_scale
    left_s = unsettled_s([ordered[object_id]], market.settled_s, scale) if object_id in ordered else 0.0
    return time.monotonic() + left_s * scale if left_s else 0.0


def certain(op: Operation, market: Market, owner: Owner, kind: str, object_id: str) -> Resource | None:
    """Look until it is certain whether a thing exists: forgetting one that was ordered only now would order it twice.

    Raises:
        WaitError: nobody can know yet.
    """
    until = fresh_until(op, market, owner.mark, kind, object_id)

    def look() -> tuple[Resource | None] | Pending:
        found = market.find(kind, object_id, owner, fresh=time.monotonic() < until)
        return found if isinstance(found, Pending) else (found,)

    what = f"certainty about {kind} {object_id}"
    return wait_until(what, look, op.deadline.within(2 * market.settled_s), op.log.progress)[0]


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


def _fits(request: OrderRequest, thing: Resource) -> bool:
    """Filters of the account are checked again here: one that it ignores returns everybody's things."""
    return thing.is_alive and thing.called == request.name and thing.owner == request.owner
