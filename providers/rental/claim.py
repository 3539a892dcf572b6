"""Which computer orders for a stack: the one whose journal is named in the account.

Another one there reveals another computer, or a journal that was lost: then nothing is ordered before all that was ordered
is in the lists.
"""

from __future__ import annotations

import math
import time

from providers.rental import clock
from providers.rental.backend import Backend, Claim, OrderRequest
from providers.rental.errors import ProviderError
from providers.rental.operation import Operation
from providers.rental.waiting import Pending, wait_until

KNOWN_FOR_S = 10.0
"""Orders that are sent within so long of each other share one look at the claim."""


def is_held(op: Operation, backend: Backend, request: OrderRequest, settle_s: float) -> bool:
    """Make sure, right before an order, that this journal alone orders for the stack.

    Args:
        settle_s: how long whatever another computer ordered may be missing from the lists.

    Returns:
        False if it had to wait for the lists, so that they have to be looked at again.

    Raises:
        ProviderError: another computer has begun to order for the stack since this one did.
    """
    asked, owner, ours = time.monotonic(), request.owner, op.journal(request.owner.mark).identity()
    with op.session.claim_lock:
        claim = backend.read_claim(owner, request.key_ids or (), KNOWN_FOR_S * op.deadline.time_scale)
        if claim is None:
            return True  # Nothing of the stack was ever there, so nobody has ordered for it.
        if claim.journal == ours:
            return op.session.claimed.setdefault(owner, -math.inf) <= asked
        if owner in op.session.claimed:
            raise ProviderError(_taken(op, claim))
        _take_over(op, backend, request, claim, settle_s)
        op.session.claimed[owner] = time.monotonic()
        return False


def _take_over(op: Operation, backend: Backend, request: OrderRequest, claim: Claim, settle_s: float) -> None:
    ours = op.journal(request.owner.mark).identity()
    backend.write_claim(request.owner, Claim(claim.object_id, ours))
    span = f"{settle_s * op.deadline.time_scale:.0f} s"
    op.log.info(
        f"The account has this stack's ssh key {claim.object_id}, and this computer's journal did not order with it last: "
        f"another computer did, or the journal was lost. Waits {span}, once, until whatever was ordered is in the account's lists."
    )
    began = clock.now()

    def look() -> bool | Pending:
        passed = clock.since(began) or 0.0
        return passed > settle_s * op.deadline.time_scale or Pending(f"the first order waits {span} for the lists")

    wait_until("the account's lists", look, op.deadline, op.log.progress)
    after = backend.read_claim(request.owner, [claim.object_id], 0.0)
    if after is None or after.journal != ours:
        raise ProviderError(_taken(op, after or claim))


def _taken(op: Operation, claim: Claim) -> str:
    return (
        f"ordering for {op.name}: another computer orders for stack {op.stack} now (ssh key {claim.object_id} names its "
        f"journal, {claim.journal}). Nothing was ordered from here. Let that one end, and run the command again."
    )
