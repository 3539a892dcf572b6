"""An operation of the provider: how it waits, and how it sends an order at most once, and from one computer only.

Its intent is on the disk before it is sent, its outcome right after. A lost answer is resolved by looking: in the account, and in the
journal while lists lag.

The claim names the journal that orders for a stack, in the account itself. Another name there reveals another computer, or a
journal that was lost: then nothing is ordered before all that was ordered is in the lists.
"""

import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, TypeVar

from microcluster.accounts.shared.account import (
    Claim,
    Found,
    Market,
    OrderRequest,
    OrderStatus,
    Pending,
    Resource,
    Terms,
)
from microcluster.accounts.shared.errors import CallError, EngineGoneError, OrderWithoutId, ProviderError, WaitError
from microcluster.accounts.shared.journal import Intent, Journal, now, since
from microcluster.core.home import Owner
from microcluster.core.plain_text import duration

ORDER_ATTEMPTS = 3
PAUSE_S = 5.0
"""Pause between two attempts, long enough for a rate limit to pass."""
CLAIM_KNOWN_FOR_S = 10.0
"""Orders that are sent within so long of each other share one look at the claim."""
LISTS_KNOWN_FOR_S = 1.0
"""Age up to which such orders share the lists, unless an earlier order is unresolved; the wait for another computer allows for it."""
REPLACED_WITHIN_S = 3600
"""A rental that has held nothing for longer is over."""
NOT_ARRIVED = "not arrived"
STANDING_S = 600.0
"""Wait beyond the lists' lag for a machine of which the account shows the order or the charge alone."""
SHORTEST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 10.0
PAUSE_SHARE = 0.05
"""Pause between two looks as a share of the time already waited: short waits end soon, long ones cost few calls."""
TELL_EVERY_S = 5.0
Awaited = TypeVar("Awaited")
Tell = Callable[[str], None]


@dataclass(frozen=True)
class Log:
    """Messages about one resource to a person while an operation runs."""

    info: Tell
    """Function that adds a message to the resource in the command's summary."""
    progress: Tell
    """Function that shows what is in progress."""
    warn: Tell


class Session:
    """The account of this provider process, opened with the first call that needs it."""

    def __init__(self, open_account: Callable[[], Market], time_scale: float, stop: threading.Event) -> None:
        self.time_scale = time_scale
        self.stop = stop
        self.claim_lock = threading.Lock()
        self.claimed: dict[Owner, float] = {}
        """The stacks for which this process may order, and when it had waited for the lists."""
        self.limits = Terms(0)
        """Limits of the stack file; the moment of the first order is in the account."""
        self.named: dict[Owner, str] = {}
        """The rentals that this process has written into the account."""
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
    log: Log
    limit_s: float
    """Time limit of the whole operation."""
    engine_lives: Callable[[], bool] = lambda: True
    began: float = field(default_factory=time.monotonic)

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

    def journal(self, owner: Owner) -> Journal:
        """Return the journal of an owner in this account."""
        return self.session.market().journal(owner)

    def scaled(self, seconds: float) -> float:
        """Turn seconds of the account's time into seconds on the clock."""
        return seconds * self.session.time_scale

    @property
    def left_s(self) -> float:
        """Seconds on the clock until its limit."""
        return max(self.began + self.scaled(self.limit_s) - time.monotonic(), 0.0)

    def pause(self, seconds: float) -> None:
        """Pause between two attempts; a request to stop ends the pause."""
        self.session.stop.wait(min(self.scaled(seconds), self.left_s))

    def wait_until(self, what: str, look: Callable[[], Awaited | Pending], within_s: float = math.inf) -> Awaited:
        """Look until it is there and return it; a look that raises ends the wait.

        Args:
            what: the subject of the sentence, for example ``guest 101 (gpu-0) provisioned``.
            look: returns what is waited for, or ``Pending``.
            within_s: how patient to be, and never beyond the operation's own limit.
        """
        began = time.monotonic()
        ends = began + min(self.scaled(within_s), self.left_s)
        last_detail, last_told_s = "", 0.0
        while True:
            result = look()
            if not isinstance(result, Pending):
                return result
            waited = time.monotonic() - began
            usually = "" if result.usual_s is None else f" (this step usually takes {duration(result.usual_s)})"
            message = f"{result.detail}, {duration(waited)} so far{usually}"
            if last_detail != result.detail or waited - last_told_s >= TELL_EVERY_S:
                self.log.progress(message)
                last_detail, last_told_s = result.detail, waited
            if self.session.stop.is_set():
                raise WaitError(f"waiting for {what}: stopped on request ({message}). Run the command again to go on.")
            left_s = ends - time.monotonic()
            if left_s <= 0:
                raise WaitError(
                    f"waiting for {what}: not within the time allowed ({message}). Run the command again to go on."
                )
            self.session.stop.wait(min(self.scaled(pause_s(waited / self.session.time_scale)), max(left_s, 0.01)))

    def before_order(self, what: str) -> None:
        """Refuse to order anything for an engine that is gone or has asked to stop."""
        if not self.engine_lives() or self.session.stop.is_set():
            raise EngineGoneError(
                f"ordering {what}: the engine is gone or stops, so nothing was ordered. Run the command again."
            )


def pause_s(waited_s: float) -> float:
    """Return how long to pause after having waited so long."""
    return min(max(waited_s * PAUSE_SHARE, SHORTEST_PAUSE_S), LONGEST_PAUSE_S)


def adopt_or_order(op: Operation, market: Market, request: OrderRequest) -> Resource | str:
    """Return the living object, to be adopted, or order one and return its id.

    Nothing is ordered while an earlier order may still turn up. An order that certainly made nothing is repeated; one whose
    answer got lost is looked for, and where it costs money only the next command may send it again.

    Raises:
        ProviderError: nothing was ordered, or nobody knows yet.
    """
    failure: CallError | None = None
    is_lost, journal = False, op.journal(request.owner)
    for attempt in range(ORDER_ATTEMPTS + 1):
        found = reconcile(op, market, request, gives_up=not is_lost)
        if found is not None:
            return found
        if attempt == ORDER_ATTEMPTS or is_lost or (failure and not _may_repeat(failure)):
            break
        try:
            order = market.prepare(op, request)
            if request.is_billed and not _hold_claim(op, market, request):
                continue
            op.log.progress("ordering")
            return submit(op, market, request, order)
        except CallError as error:
            failure = error
        is_lost = request.is_billed and bool(journal.unresolved(op.name, request.kind))
        if _may_repeat(failure):
            op.pause(PAUSE_S)
        elif request.is_unique and (there := _find_late(op, market, request)):
            return there
    next_step = "Run the command again."
    if failure is not None and not _may_repeat(failure):
        next_step = request.advice(failure) or "Correct the stack file, or ask the vendor."
    raise ProviderError(
        f"ordering {request.what}: {failure}. The account shows none, so nothing was ordered. {next_step}"
    ) from failure


def submit(op: Operation, market: Market, request: OrderRequest, order: Any) -> str:
    """Send one order, exactly once, and return the id of what it makes.

    Raises:
        CallError: unless it is a refusal, the intent stays unresolved, for ``reconcile``.
    """
    journal = op.journal(request.owner)
    intent = Intent(op.name, request.kind, request.hostname, request.sold, request.name, ahead_s=market.clock_ahead_s)
    attempt = journal.intend(intent).attempt
    try:
        op.before_order(f"{intent.kind} {intent.name}")
        resource_id = market.order(order)
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
        journal.refused(attempt, "engine gone")
        raise
    journal.ordered(attempt, resource_id)
    return resource_id


def _hold_claim(op: Operation, market: Market, request: OrderRequest) -> bool:
    """Make sure, right before an order, that this journal alone orders for the stack.

    Returns:
        False if it had to wait for the lists, so that they have to be looked at again.

    Raises:
        ProviderError: another computer has begun to order for the stack since this one did.
    """
    asked_at, owner, ours = time.monotonic(), request.owner, op.journal(request.owner).identity()
    with op.session.claim_lock:
        claim = market.claim(
            owner, key_ids=request.key_ids, max_age_s=op.scaled(CLAIM_KNOWN_FOR_S)
        ) or market.make_claim(op, owner)
        if claim is None:
            return True  # Nothing of the stack was ever there, so nobody has ordered for it.
        if claim.journal == ours:
            _name_rental(op, market, claim, owner)
            waited_at = op.session.claimed.setdefault(owner, float("-inf"))
            # Whoever looked at the lists before another thread had waited for them looks again.
            return waited_at <= asked_at
        if owner in op.session.claimed:
            raise ProviderError(_taken(op, claim))
        _name_rental(op, market, _take_over(op, market, request, claim, ours), owner)
        op.session.claimed[owner] = time.monotonic()
        return False


def _name_rental(op: Operation, market: Market, claim: Claim, owner: Owner) -> None:
    """Write down, once in a process and before it orders, when the rental began and what limits it."""
    if owner in op.session.named:
        return
    asked_at = int(time.time() - market.clock_ahead_s)
    terms = replace(op.session.limits, first_order=rental_began(market, owner, claim.terms, asked_at))
    if terms != claim.terms:
        newest = market.claim(owner, key_ids=[claim.object_id]) or claim
        extended = newest.extended if terms.first_order < asked_at else ""  # That of the last rental ended with it.
        market.write_claim(replace(newest, terms=terms, extended=extended), owner)
    op.session.named[owner] = terms.rental_id(market.whoami().account_id, owner)


def rental_began(market: Market, owner: Owner, terms: Terms | None, now: int) -> int:
    """Return the second of the first order of the rental that goes on; ``now``, where none does.

    A rental that lost all its machines only just goes on: one of them may be on its way to be replaced. One that a version
    without terms ordered began with its oldest machine.
    """
    machines = [each for each in market.resources(owner, market.machine, LISTS_KNOWN_FOR_S) if each.is_alive]
    if terms is None:
        return int(min((each.since.timestamp() for each in machines if each.since), default=now))
    if machines or now - terms.first_order < REPLACED_WITHIN_S:
        return terms.first_order
    ended = max((row.closed.timestamp() for row in market.charges(owner, exact=False) if row.closed), default=0.0)
    return terms.first_order if now - ended < REPLACED_WITHIN_S else now


def _take_over(op: Operation, market: Market, request: OrderRequest, claim: Claim, ours: str) -> Claim:
    """Write our journal's name, and wait until whatever another computer ordered is in the lists; return the claim as it is then."""
    newest = market.claim(request.owner, key_ids=[claim.object_id]) or claim
    market.write_claim(replace(newest, journal=ours), request.owner)
    # Who looked at the claim just before may send its order until then, and our next look may be at a list of before.
    settle_s = op.scaled(CLAIM_KNOWN_FOR_S + market.settled_s + LISTS_KNOWN_FOR_S)
    op.log.info(
        f"The account has this stack's claim {claim.object_id}, and this computer's journal did not order with it last: "
        f"another computer did, or the journal was lost. Waits {settle_s:.0f} s, once, until whatever was ordered is in the "
        "account's lists."
    )
    began = now()

    def look() -> bool | Pending:
        return (since(began) or 0.0) > settle_s or Pending(f"the first order waits {settle_s:.0f} s for the lists")

    op.wait_until("the account's lists", look)
    claim_after = market.claim(request.owner, key_ids=[claim.object_id])
    if claim_after is None or claim_after.journal != ours:
        raise ProviderError(_taken(op, claim_after or claim))
    return claim_after


def _taken(op: Operation, claim: Claim) -> str:
    return (
        f"ordering for {op.name}: another computer orders for stack {op.stack} now (claim {claim.object_id} names its "
        f"journal, {claim.journal}). Nothing was ordered from here. Let that one end, and run the command again."
    )


def _may_repeat(failure: CallError) -> bool:
    return isinstance(failure, OrderWithoutId) or failure.is_transient


def _find_late(op: Operation, market: Market, request: OrderRequest) -> Resource | None:
    late = Pending("it was refused; looking whether the account has it already")
    try:
        return op.wait_until(request.what, lambda: look_once(op, market, request) or late, market.lists_lag_s)
    except WaitError:
        return None


def reconcile(op: Operation, market: Market, request: OrderRequest, *, gives_up: bool = True) -> Resource | None:
    """Look for what is requested; while an order for it is unresolved, go on until the lists must show what it made.

    Args:
        gives_up: whether an order of which the account shows nothing is written down as failed, so that it may be sent again.

    Raises:
        ProviderError: the account shows that something was ordered, and for too long not the machine itself.
    """
    journal, scale = op.journal(request.owner), op.session.time_scale
    earlier = journal.unresolved(op.name, request.kind)
    ends = time.monotonic() + op.scaled(unsettled_s(earlier, market.settled_s, scale) + STANDING_S)
    max_age_s = 0.0 if earlier else op.scaled(LISTS_KNOWN_FOR_S)

    def look() -> tuple[Resource | None] | Pending:
        is_settled = unsettled_s(earlier, market.settled_s, scale) == 0
        found = look_once(op, market, request, max_age_s)
        if found is not None:
            return found if isinstance(found, Pending) else (found,)
        if not is_settled:
            return Pending(
                f"the answer to the order of {earlier[-1].at[:19]} UTC got lost; looking whether it was accepted"
            )
        trace = evidence(market, request.owner, request.hostname, earlier, max_age_s)
        if trace is None:
            return (None,)
        if time.monotonic() > ends:
            raise ProviderError(standing(f"{request.kind} {request.name}", trace))
        return Pending(f"{trace.described}, and the account does not show what was ordered")

    (found,) = op.wait_until(f"the order of {op.name}", look)
    for each in earlier:
        if found is not None:
            journal.ordered(each.attempt, found.id)
        elif gives_up:
            journal.refused(each.attempt, NOT_ARRIVED)
    return found


def look_once(op: Operation, market: Market, request: OrderRequest, max_age_s: float = 0.0) -> Found:
    """Return the living thing that is requested; ``Pending`` while one may exist that the account does not show.

    Lists lag behind orders and cancellations: which ids to look at comes from list and journal, what they are from themselves.
    """
    if request.look is not None:
        return request.look()
    journal = op.journal(request.owner)
    accepted = journal.accepted(request.kind)
    # What the journal does not know, another computer may have ordered only now.
    settled = set(journal.made(request.kind)) - set(within_lag(op, market, accepted))
    ids = {each.id for each in market.resources(request.owner, request.kind, max_age_s) if _fits(request, each)}
    for made, intent in accepted.items():
        is_for_it = intent.hostname == request.hostname if request.hostname else intent.name == op.name
        if is_for_it:
            ids.add(made)
    by_id: dict[str, Resource | Pending | None] = {}
    for each in sorted(ids):
        by_id[each] = market.find(request.kind, each, request.owner, fresh=each not in settled)
        if by_id[each] is None:
            journal.closed(request.kind, each)
    living = [each for each in by_id.values() if isinstance(each, Resource) and _fits(request, each)]
    if len(living) > 1:
        raise ProviderError(
            f"ordering {request.what}: the account has several living ones of this name and mark: "
            f"{', '.join(each.described for each in living)}. Nothing was touched; cancel the ones that are too many."
        )
    uncertain = [each for each in by_id.values() if isinstance(each, Pending)]
    return next(iter([*living, *uncertain]), None)


def evidence(
    market: Market, owner: Owner, hostname: str | None, intents: Sequence[Intent], max_age_s: float = 0.0
) -> OrderStatus | None:
    """Find what shows that one of these orders was accepted, or that a machine of this name is billed; None if nothing does."""
    ahead_s = market.clock_ahead_s
    sent = (datetime.fromisoformat(each.at) - timedelta(seconds=each.ahead_s or ahead_s) for each in intents)
    oldest = min(sent, default=None)
    return market.standing(owner, hostname, oldest, [each.order_id for each in intents if each.order_id], max_age_s)


def standing(what: str, trace: OrderStatus) -> str:
    return (
        f"ordering {what}: the account does not show what was ordered, but {trace.described}. Nothing is ordered a second time while "
        "that stands. Ask the vendor what became of it, or have it cancelled; then run the command again."
    )


def within_lag(op: Operation, market: Market, made: Mapping[str, Intent]) -> dict[str, Intent]:
    """Choose what was ordered so recently that the account need not show it yet."""
    scale = op.session.time_scale
    return {each: intent for each, intent in made.items() if unsettled_s([intent], market.settled_s, scale) > 0}


def unsettled_s(intents: Sequence[Intent], settle_s: float, time_scale: float) -> float:
    """Return how long, in unscaled seconds, what these orders made may still be missing from the lists."""
    return max([0.0, *(settle_s - each.over_s / time_scale for each in intents)])


def _fits(request: OrderRequest, thing: Resource) -> bool:
    """Filters of the account are checked again here: one that it ignores returns everybody's things."""
    return thing.is_alive and thing.called == request.name and thing.owner == request.owner
