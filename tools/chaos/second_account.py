"""A second account, in memory, as a ``Backend``: it has nothing of SoftLayer, and faults of its own."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from providers.rental.backend import Backend, Belonging, Claim, Found, OrderRequest, OrderStatus, Tell, Thing
from providers.rental.errors import CallError
from providers.rental.operation import Identity
from providers.rental.owner_mark import Owner
from providers.rental.receipt import Charge
from providers.rental.waiting import Deadline, Pending
from tools.chaos.market import BADGE, MACHINE, Market

BUILD_S = 3.0


class Second(Backend):
    """What one process sees of the market."""

    machine, machine_label, other_kinds = MACHINE, MACHINE, (BADGE,)
    lists_lag_s, longest_call_s = 60.0, 30.0

    def __init__(self, market: Market) -> None:
        self._market, self._epoch = market, market.epoch

    def identity(self) -> Identity:
        return Identity("second", "", self.username, "memory")

    def list(self, kind: str, owner: Owner) -> list[Thing]:
        return [each for each in self._call("list", Market.listed) if (each.kind, each.owner) == (kind, owner)]

    def find(self, kind: str, object_id: str, owner: Owner, *, fresh: bool, max_age_s: float = 0.0) -> Found:
        found = self._call("find", lambda market: market.things.get(object_id))
        if fresh and (found is None or self._market.now - found.row < self._market.lag_s / 2):
            return Pending(f"{object_id} is not shown yet")
        is_built = found is None or kind == BADGE or self._market.now - found.row > BUILD_S
        return found if is_built else replace(found, work="BUILD", unready=Pending("BUILD"), is_built=False)

    def order(self, order: OrderRequest) -> str:
        return self._call("order", lambda market: market.make(order).id)

    def order_status(self, order_id: str, owner: Owner) -> OrderStatus | None:
        thing = self._call("order_status", lambda market: market.things.get(order_id))
        return OrderStatus(order_id, f"its order {order_id} stands") if thing and thing.is_alive else None

    def read_claim(self, owner: Owner, key_ids: Sequence[str], max_age_s: float) -> Claim | None:
        known = self._call("read_claim", lambda market: [each for each in key_ids if each in market.things])
        return Claim(known[0], self._market.claims[known[0]]) if known else None

    def write_claim(self, owner: Owner, claim: Claim) -> None:
        self._call("write_claim", lambda market: market.claims.update({claim.object_id: claim.journal}))

    def cancel(self, thing: Thing) -> None:
        self._call("cancel", lambda market: market.put(replace(thing, is_alive=False, is_billed=False)))

    def everything(self) -> "list[Belonging]":
        return [
            Belonging(each.kind, each.id, each.name, each.owner) for each in self._call("everything", Market.listed)
        ]

    def remove(self, kind: str, object_id: str, owner: Owner, deadline: Deadline, tell: Tell) -> None:
        thing = self._call("find", lambda market: market.things.get(object_id))
        if thing is not None and thing.owner == owner:
            self._call("remove", lambda market: market.put(replace(thing, is_alive=False)))

    def charges(self, owner: Owner, known_ids: Iterable[str] = ()) -> "list[Charge]":
        ids = {*known_ids, *(each.id for each in self.list(MACHINE, owner))}
        return self._call("charges", lambda market: [market.charges[each] for each in sorted(ids)])

    def _call(self, method: str, act: Callable[[Market], Any]) -> Any:
        try:
            return self._market.answer(method, self._epoch, act)
        except CallError as error:
            error.is_refusal, error.is_transient = error.code in ("busy", "full"), error.code in ("busy", "lost")
            raise
