"""What became of accepted orders whose receipt names no thing: known from the journal and from their charges."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from providers.softlayer import placing
from providers.softlayer.account import Account
from providers.softlayer.errors import Unfinished
from providers.softlayer.goods import ORDER_PREFIX, Goods, Row, order_id, order_of_id
from providers.softlayer.session import Operation
from providers.softlayer.waiting import Pending

ITEM_MASK = (
    "mask[id,cancellationDate,hourlyFlag,hourlyRecurringFee,recurringFee,children[hourlyRecurringFee,recurringFee],"
    "orderItem[order[id]]]"
)


def unseen(
    op: Operation, account: Account, owner_mark: str, kind: str, shown: Sequence[Row]
) -> tuple[list[Row], Pending | None]:
    """Return what this resource ordered, by the journal, of what is shown; and what there is to wait for.

    An order that was accepted only now may be in no list yet, so that its absence proves nothing until its charge has ended.
    """
    made = op.journal(owner_mark).accepted(account.identity().account_id, kind)
    ours = {each for each, intent in made.items() if intent.name == op.name}
    young = set(placing.fresh(op, account, owner_mark, kind)) & ours
    orders = {order for each in young - _ids(shown) if (order := order_of_id(each))}
    ended = {order for order, item in charges(account, orders).items() if item.get("cancellationDate")}
    missing = ", ".join(sorted(orders - ended))
    waiting = Pending(f"order {missing} was accepted, and the account does not show what it made yet")
    return [each for each in shown if _ids([each]) & ours], waiting if missing else None


def gone(op: Operation, kind: Goods, resource_id: str, inputs: Mapping[str, Any], old: Mapping[str, Any]) -> None:
    """Tell that a recorded thing which the account does not show is gone.

    Raises:
        Unfinished: its charge is open, or it was ordered only now, so that it is not.
    """
    account, order = op.account(old.get("accountId")), order_of_id(resource_id) or old.get("orderId")
    state = _absence(op, account, str(inputs.get("mark")), kind, order) if order else None
    if state:
        raise Unfinished(
            resource_id, dict(old), f"{kind.word} {resource_id} is not ready: {state.detail}.", dict(inputs)
        )


def _absence(op: Operation, account: Account, owner_mark: str, kind: Goods, order: str) -> Pending | None:
    """Decide what it means that the account does not show what an order made; None: it is gone."""
    item = charges(account, {order}).get(order)
    if item is not None:
        is_open = not item.get("cancellationDate")
        return Pending(f"the account does not show it, but its billing item {item['id']} is open") if is_open else None
    is_fresh = f"{ORDER_PREFIX}{order}" in placing.fresh(op, account, owner_mark, kind.kind)
    return Pending(f"the account does not show it yet, as order {order} was accepted only now") if is_fresh else None


def closed(op: Operation, account: Account, owner_mark: str, kind: str, ids: Iterable[str | None]) -> None:
    """Write into the journal that what an order made is gone; it stands there by its id or by its order's."""
    for each in filter(None, ids):
        for name in {each, f"{ORDER_PREFIX}{each}"}:
            op.journal(owner_mark).closed(account.identity().account_id, kind, name)


def charges(account: Account, orders: Collection[str]) -> dict[str, Row]:
    """Return the top-level billing items of orders, by order; they stay readable after their end."""
    if not orders:
        return {}
    items = account.api.read_all("Account", "getAllTopLevelBillingItems", mask=ITEM_MASK)
    found = {str(((each.get("orderItem") or {}).get("order") or {}).get("id")): each for each in items}
    return {order: found[order] for order in orders if order in found}


def _ids(rows: Iterable[Row]) -> set[str]:
    """Name things as the journal may know them: by their own id, or by that of their order."""
    return {name for row in rows for name in (str(row["id"]), f"{ORDER_PREFIX}{order_id(row)}")}
