"""A second account, in memory, as a ``Backend``: it has nothing of SoftLayer, and faults of its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from random import Random
from types import SimpleNamespace
from typing import Any

from providers.rental.backend import Belonging, Claim, OrderRequest, OrderStatus, Tell, Thing
from providers.rental.errors import CallError, OrderWithoutId
from providers.rental.operation import Identity, Operation
from providers.rental.owner_mark import Owner
from providers.rental.receipt import Charge
from providers.rental.waiting import Deadline, Pending

MACHINE, BADGE = "Machine", "Badge"
BUILD_S = 3.0
PRICE = Decimal("2.50")
FAULTS = ("busy", "lost", "odd", "full", "nameless")
BEGAN = datetime(2026, 1, 1, tzinfo=UTC)


class Killed(BaseException):
    """The process that made the call is dead."""


@dataclass
class Market:
    """What outlives a process: things, lists that lag, the history, and what is to go wrong."""

    scale: float
    lag_s: float = 0.0
    share: float = 0.0
    """Of the calls, how many go wrong."""
    chance: Random = field(default_factory=Random)
    strike: tuple[int, bool] | None = None
    """The number of a call, and whether its process dies after the account has carried it out, or before."""
    things: dict[str, Thing] = field(default_factory=dict)
    claims: dict[str, str | None] = field(default_factory=dict)
    pages: list[tuple[float, dict[str, Thing]]] = field(default_factory=list)
    history: list[dict[str, Any]] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    epoch: int = 0
    lock: Any = field(default_factory=threading.RLock)

    @property
    def now(self) -> float:
        return time.monotonic() / self.scale

    def listed(self) -> list[Thing]:
        return next((list(page.values()) for at, page in self.pages[::-1] if at <= self.now - self.lag_s), [])

    def put(self, thing: Thing, event: str) -> Thing:
        """Make, change or end a thing; a machine that was cancelled stays to be seen."""
        line = {"kind": "event", "at": self.now, "event": event, "id": int(thing.id), "per_hour": str(PRICE)}
        machine = {"what": "billing_item", "host": thing.name, "domain": f"{thing.owner}.microcluster"}
        badge = {"what": "ssh_key", "notes": f"microcluster {thing.owner}"}
        self.history.append(line | (machine if thing.kind == MACHINE else badge))
        self.things[thing.id] = thing
        if thing.kind == BADGE and not thing.is_alive:
            del self.things[thing.id]
        self.pages.append((self.now, dict(self.things)))
        return thing


class Second:
    """What one process sees of the market."""

    machine, machine_label, other_kinds = MACHINE, "machine", (BADGE,)
    lists_lag_s, longest_call_s = 60.0, 30.0
    secrets, username, grant_cancelling = (), "somebody", "grant somebody cancelling"

    def __init__(self, market: Market) -> None:
        self._market, self._epoch = market, market.epoch

    def identity(self) -> Identity:
        return Identity("second", "", self.username, "memory")

    def list(self, kind: str, owner: Owner) -> list[Thing]:
        return [each for each in self._call("list", Market.listed) if (each.kind, each.owner) == (kind, owner)]

    def find(
        self, kind: str, object_id: str, owner: Owner, *, fresh: bool, max_age_s: float = 0.0
    ) -> Thing | Pending | None:
        found = self._call("find", lambda market: market.things.get(object_id))
        if fresh and (found is None or self._market.now - found.row < self._market.lag_s / 2):
            return Pending(f"{object_id} is not shown yet")
        is_built = found is None or kind == BADGE or self._market.now - found.row > BUILD_S
        return found if is_built else replace(found, work="BUILD", unready=Pending("BUILD"), is_built=False)

    def look(self, op: Operation, request: OrderRequest) -> None:
        """Everything here has a name."""

    def prepare(self, request: OrderRequest) -> Any:
        return SimpleNamespace(content={"kind": request.kind, "name": request.name}, request=request)

    def order(self, order: Any) -> str:
        return self._call("order", lambda market: self._made(market, order.request).id)

    def _made(self, market: Market, wanted: OrderRequest) -> Thing:
        number, is_machine = str(100 + len(market.history)), wanted.kind == MACHINE
        market.claims[number] = wanted.spec
        thing = Thing(wanted.kind, number, wanted.name, wanted.owner, number, is_billed=is_machine, row=market.now)
        return market.put(thing, "opened" if is_machine else "made")

    def order_status(self, order_id: str, owner: Owner) -> OrderStatus | None:
        thing = self._call("order_status", lambda market: market.things.get(order_id))
        return OrderStatus(order_id, f"its order {order_id} stands") if thing and thing.is_alive else None

    def order_of(self, machine: Thing, max_age_s: float) -> None:
        """No list shows an order here."""

    def waiting_order(self, owner: Owner, hostname: str | None = None) -> None:
        """Nobody approves anything here."""

    def advice(self, request: OrderRequest, error: CallError) -> str | None:
        return "Wait for a place." if error.code == "full" else None

    def is_refusal(self, error: CallError) -> bool:
        return error.code in ("busy", "full")

    def is_transient(self, error: CallError) -> bool:
        return error.code in ("busy", "lost")

    def is_forbidden(self, error: CallError) -> bool:
        return False

    def read_claim(self, owner: Owner, key_ids: Sequence[str], max_age_s: float) -> Claim | None:
        known = self._call("read_claim", lambda market: [each for each in key_ids if each in market.things])
        return Claim(known[0], self._market.claims[known[0]]) if known else None

    def write_claim(self, owner: Owner, claim: Claim) -> None:
        self._call("write_claim", lambda market: market.claims.update({claim.object_id: claim.journal}))

    def cancel(self, thing: Thing) -> None:
        self._call("cancel", lambda market: market.put(replace(thing, is_alive=False, is_billed=False), "closed"))

    def check_visible(self, thing: Thing) -> None: ...

    def check_to_prove(self) -> None: ...

    def everything(self) -> list[Belonging]:
        labels = {MACHINE: self.machine_label, BADGE: BADGE}
        rows = self._call("everything", Market.listed)
        return [Belonging(labels[each.kind], each.id, each.name, each.owner) for each in rows]

    def remove(self, kind: str, object_id: str, owner: Owner, deadline: Deadline, tell: Tell) -> None:
        thing = self._call("find", lambda market: market.things.get(object_id))
        if thing is not None and thing.owner == owner:
            self._call("remove", lambda market: market.put(replace(thing, is_alive=False), "removed"))

    def charges(self, owner: Owner, known_ids: Iterable[str] = ()) -> list[Charge]:
        ids = {*known_ids, *(each.id for each in self.list(MACHINE, owner))}
        return self._call("charges", lambda market: [_charge(market, each) for each in sorted(ids)])

    def charged_names(self, owner: Owner) -> list[str]:
        return [each.name for each in self.list(MACHINE, owner)]

    def _call(self, method: str, act: Callable[[Market], Any]) -> Any:
        market = self._market
        with market.lock:
            market.calls.append(method)
            number, dies_after = market.strike or (0, False)
            dies = number == len(market.calls)
            if market.epoch != self._epoch or (dies and not dies_after):
                market.epoch += dies
                raise Killed
            fault = market.chance.choice(FAULTS) if market.chance.random() < market.share else ""
            if fault in ("busy", "full"):
                raise CallError(method, fault, "the account did not do it")
            answer = act(market)
            market.epoch += dies
        if dies:
            raise Killed
        if fault == "nameless" and method == "order":
            raise OrderWithoutId(method, answer)
        if fault:
            raise CallError(method, fault, "the answer is not readable")
        return answer


def _charge(market: Market, number: str) -> Charge:
    lines = [each for each in market.history if each["id"] == int(number)]
    dates = [BEGAN + timedelta(seconds=each["at"]) for each in lines]
    closed = dates[1] if len(dates) > 1 else None
    return Charge(number, MACHINE, lines[0]["host"], "", dates[0], closed, None, True, PRICE, Decimal(0), PRICE, "USD")
