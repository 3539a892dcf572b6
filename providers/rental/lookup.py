"""Finds what an interrupted run ordered, by its name among the stack's own things."""

from __future__ import annotations

from providers.rental import idempotent_order
from providers.rental.backend import Backend, OrderRequest, Thing
from providers.rental.errors import ProviderError
from providers.rental.journal import Intent
from providers.rental.operation import Operation
from providers.rental.waiting import Pending


def by_name(op: Operation, backend: Backend, request: OrderRequest) -> Thing | Pending | None:
    """Return the living thing of this name and owner; ``Pending`` while one may exist that the account does not show.

    Lists lag behind orders and cancellations: which ids to look at comes from list and journal, what they are from themselves.
    """
    journal, account_id = op.journal(request.owner.mark), backend.identity().account_id
    accepted = journal.accepted(account_id, request.kind)
    # What the journal does not know, another computer may have ordered only now.
    made = journal.made(account_id, request.kind)
    settled = set(made) - set(idempotent_order.within_lag(op, backend, accepted))
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


def _is_for(op: Operation, request: OrderRequest, intent: Intent) -> bool:
    return intent.hostname == request.hostname if request.hostname else intent.name == op.name


def _fits(request: OrderRequest, thing: Thing) -> bool:
    """Filters of the account are checked again here: one that it ignores returns everybody's things."""
    return thing.is_alive and thing.name == request.name and thing.owner == request.owner
