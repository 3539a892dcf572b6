"""Send an order at most once, and from one computer only.

Its intent is on the disk before it is sent, its outcome right after.

The claim names the journal that orders for a stack, in the account itself. Another name there reveals another computer, or a
journal that was lost: then nothing is ordered before all that was ordered is in the lists.
"""

import math
import time
from typing import Any

from providers.rental.backend import Backend, Claim, OrderRequest, Thing
from providers.rental.errors import CallError, OrderWithoutId, ProviderError, WaitError
from providers.rental.journal import Intent, digest
from providers.rental.operation import Operation
from providers.rental.reconcile import look_once, reconcile, settled_s
from providers.rental.waiting import Pending, now, since, wait_until

ORDER_ATTEMPTS = 3
PAUSE_S = 5.0
"""Between two attempts, so that a rate limit has passed."""
ENGINE_GONE = "engine gone"
CLAIM_KNOWN_FOR_S = 10.0
"""Orders that are sent within so long of each other share one look at the claim."""


def adopt_or_order(op: Operation, backend: Backend, request: OrderRequest) -> Thing | str:
    """Return the living object, to be adopted, or order one and return its id.

    Nothing is ordered while an earlier order may still turn up. An order that certainly made nothing is repeated; one whose
    answer got lost is looked for, and where it costs money only the next command may send it again.

    Raises:
        ProviderError: nothing was ordered, or nobody knows yet.
    """
    failure: CallError | None = None
    is_billed, is_lost = request.key_ids is not None, False
    for attempt in range(ORDER_ATTEMPTS + 1):
        found = reconcile(op, backend, request, gives_up=not is_lost)
        if found is not None:
            return found
        if attempt == ORDER_ATTEMPTS or is_lost or (failure and not _may_repeat(failure)):
            break
        try:
            order = backend.prepare(request)
            if is_billed and not _hold_claim(op, backend, request):
                continue
            op.log.progress("ordering")
            return submit(op, backend, request, order)
        except CallError as error:
            failure = error
        is_lost = is_billed and _is_unresolved(op, backend, request)
        if _may_repeat(failure):
            op.deadline.pause(PAUSE_S)
        elif request.is_unique and (there := _find_late(op, backend, request)):
            return there
    raise ProviderError(
        f"ordering {request.what}: {failure}. The account shows none, so nothing was ordered. "
        f"{_next_step(backend, request, failure)}"
    ) from failure


def submit(op: Operation, backend: Backend, request: OrderRequest, order: Any) -> str:
    """Send one order, exactly once, and return the id of what it makes.

    Raises:
        CallError: unless it is a refusal, the intent stays unresolved, for ``reconcile``.
    """
    journal, account_id = op.journal(request.owner.mark), backend.identity().account_id
    content = digest(order.content)
    intent = Intent(account_id, request.owner.mark, op.name, request.kind, content, request.hostname, sold=request.sold)
    attempt = journal.intend(intent).attempt
    try:
        op.before_order(f"{intent.kind} {intent.name}")
        made = backend.order(order)
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


def _hold_claim(op: Operation, backend: Backend, request: OrderRequest) -> bool:
    """Make sure, right before an order, that this journal alone orders for the stack.

    Returns:
        False if it had to wait for the lists, so that they have to be looked at again.

    Raises:
        ProviderError: another computer has begun to order for the stack since this one did.
    """
    asked, owner, ours = time.monotonic(), request.owner, op.journal(request.owner.mark).identity()
    with op.session.claim_lock:
        claim = backend.read_claim(owner, request.key_ids or (), CLAIM_KNOWN_FOR_S * op.deadline.time_scale)
        if claim is None:
            return True  # Nothing of the stack was ever there, so nobody has ordered for it.
        if claim.journal == ours:
            return op.session.claimed.setdefault(owner, -math.inf) <= asked
        if owner in op.session.claimed:
            raise ProviderError(_taken(op, claim))
        _take_over(op, backend, request, claim, ours)
        op.session.claimed[owner] = time.monotonic()
        return False


def _take_over(op: Operation, backend: Backend, request: OrderRequest, claim: Claim, ours: str) -> None:
    """Write our journal's name, and wait until whatever another computer ordered is in the lists."""
    backend.write_claim(request.owner, Claim(claim.object_id, ours))
    # Who looked at the claim just before may send its order until then.
    settle_s = (CLAIM_KNOWN_FOR_S + settled_s(backend)) * op.deadline.time_scale
    op.log.info(
        f"The account has this stack's claim {claim.object_id}, and this computer's journal did not order with it last: "
        f"another computer did, or the journal was lost. Waits {settle_s:.0f} s, once, until whatever was ordered is in the "
        "account's lists."
    )
    began = now()

    def look() -> bool | Pending:
        return (since(began) or 0.0) > settle_s or Pending(f"the first order waits {settle_s:.0f} s for the lists")

    wait_until("the account's lists", look, op.deadline, op.log.progress)
    after = backend.read_claim(request.owner, [claim.object_id], 0.0)
    if after is None or after.journal != ours:
        raise ProviderError(_taken(op, after or claim))


def _taken(op: Operation, claim: Claim) -> str:
    return (
        f"ordering for {op.name}: another computer orders for stack {op.stack} now (claim {claim.object_id} names its "
        f"journal, {claim.journal}). Nothing was ordered from here. Let that one end, and run the command again."
    )


def _is_unresolved(op: Operation, backend: Backend, request: OrderRequest) -> bool:
    """Tell whether nobody knows what became of an order that was sent."""
    journal = op.journal(request.owner.mark)
    return bool(journal.unresolved(backend.identity().account_id, op.name, request.kind))


def _may_repeat(failure: CallError) -> bool:
    return isinstance(failure, OrderWithoutId) or failure.is_transient


def _find_late(op: Operation, backend: Backend, request: OrderRequest) -> Thing | None:
    def look() -> Thing | Pending:
        found = look_once(op, backend, request)
        return found or Pending("it was refused; looking whether the account has it already")

    try:
        return wait_until(request.what, look, op.deadline.within(backend.lists_lag_s), op.log.progress)
    except WaitError:
        return None


def _next_step(backend: Backend, request: OrderRequest, failure: CallError | None) -> str:
    if failure is None or _may_repeat(failure):
        return "Run the command again."
    return backend.advice(request, failure) or "Correct the stack file, or ask the vendor."
