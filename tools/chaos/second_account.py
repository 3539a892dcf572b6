"""A second account, in memory: it is not SoftLayer's in anything, and passes the same campaign."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any

from providers.rental import lookup
from providers.rental.backend import Belonging, Claim, OrderRequest, OrderStatus, Tell, Thing
from providers.rental.errors import CallError, OrderWithoutId
from providers.rental.operation import Identity, Operation
from providers.rental.owner_mark import Owner
from providers.rental.receipt import Charge
from providers.rental.waiting import Deadline, Pending

MACHINE, BADGE = "Machine", "Badge"
BUILD_S, WINDOW_S = 20.0, 30.0
PRICE = Decimal("2.50")
FAULTS = ("busy", "lost", "odd", "full", "nameless")
BEGAN = datetime(2026, 1, 1, tzinfo=UTC)


class Killed(BaseException):
    """The process that made the call is dead."""


@dataclass
class Market:
    """What goes on existing when a process dies: the things, their history, and the faults."""

    scale: float
    lag_s: float = 0.0
    share: float = 0.0
    """Of the calls, how many go wrong."""
    chance: Random = field(default_factory=Random)
    things: dict[str, Thing] = field(default_factory=dict)
    history: list[dict[str, Any]] = field(default_factory=list)
    pages: list[tuple[float, dict[str, Thing]]] = field(default_factory=list)
    made_at: dict[str, float] = field(default_factory=dict)
    claims: dict[str, str | None] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    strike: tuple[int, bool] | None = None
    """The number of a call, and whether its process dies before or after the account has carried it out."""
    epoch: int = 0
    numbers: Any = field(default_factory=lambda: itertools.count(101))
    lock: Any = field(default_factory=threading.RLock)

    @property
    def now(self) -> float:
        """The account's own seconds."""
        return time.monotonic() / self.scale

    def listed(self) -> dict[str, Thing]:
        """The things as the lists show them, which lag."""
        seen = [page for at, page in self.pages if at <= self.now - self.lag_s]
        return seen[-1] if seen else {}

    def put(self, thing: Thing, event: str, claim: str | None = None) -> Thing:
        """Make or change a thing, and write it down."""
        is_machine, owner = thing.kind == MACHINE, thing.owner
        at = self.now if not self.history else max(self.now, self.history[-1]["at"])
        facts = {"host": thing.name, "domain": f"{owner}.microcluster" if is_machine else None, "per_hour": str(PRICE)}
        what, notes = ("billing_item", None) if is_machine else ("ssh_key", f"microcluster {owner}")
        line = {"kind": "event", "at": at, "event": event, "what": what, "id": int(thing.id), "notes": notes}
        self.history.append(line | facts)
        self.things[thing.id] = thing
        self.made_at.setdefault(thing.id, self.now)
        self.claims.setdefault(thing.id, claim)
        if not thing.is_alive:
            del self.things[thing.id]
        self.pages.append((self.now, dict(self.things)))
        return thing


class Second:
    """One process's view of the market, as a ``Backend``."""

    machine, machine_label, unpaid_kinds = MACHINE, "machine", (BADGE,)
    lists_lag_s, longest_call_s = 60.0, 30.0
    secrets: tuple[str, ...] = ()
    username, grant_cancelling = "somebody", "grant cancel"

    def __init__(self, market: Market) -> None:
        self._market, self._epoch = market, market.epoch

    def identity(self) -> Identity:
        return Identity("second", "", self.username, "memory")

    def list(self, kind: str, owner: Owner) -> list[Thing]:
        rows = self._call("list", lambda market: list(market.listed().values()))
        return [each for each in rows if each.kind == kind and each.owner == owner]

    def find(self, kind: str, object_id: str, owner: Owner, *, fresh: bool) -> Thing | Pending | None:
        found = self._call("find", lambda market: market.things.get(object_id))
        if found is None or self._market.now - self._market.made_at[object_id] < self._market.lag_s / 2:
            return Pending(f"{object_id} is not shown yet") if fresh else found
        is_built = self._market.now - self._market.made_at[object_id] > BUILD_S
        return found if is_built or kind != MACHINE else replace(found, work="BUILD")

    def look(self, op: Operation, request: OrderRequest) -> Thing | Pending | None:
        return lookup.by_name(op, self, request)

    def prepare(self, request: OrderRequest) -> Any:
        return replace(request.spec, content={"kind": request.kind, "name": request.name})

    def order(self, order: Order) -> str:
        made = Thing(order.kind, str(next(self._market.numbers)), order.name, order.owner, order.name, is_billed=True)
        event = "opened" if order.kind == MACHINE else "made"
        return self._call("order", lambda market: market.put(made, event, order.journal).id, fault_id=made.id)

    def order_status(self, order_id: str, owner: Owner) -> OrderStatus | None:
        standing = self._call("order_status", lambda market: order_id in market.things)
        return OrderStatus(order_id, f"its order {order_id} stands") if standing else None

    def waiting_order(self, owner: Owner, hostname: str | None = None) -> None:
        return None  # Nobody approves anything here.

    def advice(self, request: OrderRequest, error: CallError) -> str | None:
        return "Wait for a place." if error.code == "full" else None

    def is_refusal(self, error: CallError) -> bool:
        return error.code in ("busy", "full", "held")

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
        rows = self._call("everything", lambda market: list(market.listed().values()))
        label = {MACHINE: self.machine_label}
        return [Belonging(label.get(each.kind, each.kind), each.id, each.name, each.owner) for each in rows]

    def remove(self, kind: str, object_id: str, owner: Owner, deadline: Deadline, tell: Tell) -> None:
        thing = self._call("find", lambda market: market.things.get(object_id))
        if thing is not None and thing.owner == owner:
            self._call("remove", lambda market: market.put(replace(thing, is_alive=False), "removed"))

    def charges(self, owner: Owner, known_ids: Iterable[str] = ()) -> list[Charge]:
        ids = {*map(int, known_ids), *self._charged(owner)}
        lines = self._call("charges", lambda market: [each for each in market.history if each["id"] in ids])
        closed = {line["id"]: _date(line["at"]) for line in lines if line["event"] == "closed"}
        opened = [line for line in lines if line["event"] == "opened"]
        return [_charge(line, closed.get(line["id"])) for line in opened]

    def charged_names(self, owner: Owner) -> list[str]:
        return self._call("charged_names", lambda market: list(self._charged(owner).values()))

    def _charged(self, owner: Owner) -> dict[int, str]:
        until = self._market.now - self._market.lag_s
        lines = [each for each in self._market.history if each["event"] == "opened" and each["at"] <= until]
        return {each["id"]: each["host"] for each in lines if each["domain"] == f"{owner}.microcluster"}

    def _call(self, method: str, act: Callable[[Market], Any], fault_id: str = "") -> Any:
        market = self._market
        with market.lock:
            market.calls.append(method)
            dies = market.strike is not None and market.strike[0] == len(market.calls)
            if market.epoch != self._epoch or (dies and not market.strike[1]):
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
            raise OrderWithoutId(method, fault_id)
        if fault:
            raise CallError(method, fault, "the answer is not readable")
        return answer


@dataclass(frozen=True)
class Order:
    """What is asked for."""

    kind: str
    name: str
    owner: Owner
    journal: str | None = None
    content: Any = None


def _date(at: float) -> datetime:
    return BEGAN + timedelta(seconds=at)


def _charge(line: dict[str, Any], closed: datetime | None) -> Charge:
    number, host, opened = str(line["id"]), line["host"], _date(line["at"])
    return Charge(number, MACHINE, host, "machine", opened, closed, None, True, PRICE, Decimal(0), PRICE, "USD")
