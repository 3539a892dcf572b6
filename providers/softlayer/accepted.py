"""What became of accepted orders whose receipt names no thing: known from the journal and from their charges."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from providers.softlayer import placing
from providers.softlayer.account import Account
from providers.softlayer.goods import ORDER_PREFIX, Row, order_id, order_of_id
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
