"""What the second account has and remembers while processes come and go, and what goes wrong with a call."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from random import Random
from typing import Any

from providers.rental.backend import OrderRequest, Thing
from providers.rental.errors import CallError, OrderWithoutId
from providers.rental.receipt import Charge

MACHINE, BADGE = "machine", "badge"
PRICE = Decimal("2.50")
HISTORY_WORDS = {MACHINE: ("billing_item", "opened", "closed"), BADGE: ("ssh_key", "made", "removed")}


class Killed(BaseException):
    """The process that made the call is dead."""


@dataclass
class Market:
    """What outlives a process: things, lists that lag, the history, and what is to go wrong."""

    scale: float
    lag_s: float = 0.0
    share: float = 0.0
    chance: Random = field(default_factory=Random)
    strike: tuple[int, bool] | None = None
    """The number of a call, and whether its process dies after the account has carried it out, or before."""
    things: dict[str, Thing] = field(default_factory=dict)
    charges: dict[str, Charge] = field(default_factory=dict)
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

    def make(self, wanted: OrderRequest) -> Thing:
        number, is_billed = str(100 + len(self.history)), wanted.kind == MACHINE
        self.claims[number] = wanted.spec
        made = Thing(wanted.kind, number, wanted.name, wanted.owner, number, is_billed=is_billed, row=self.now)
        return self.put(made)

    def put(self, thing: Thing) -> Thing:
        """Make a thing or end it; a machine that was cancelled stays to be seen."""
        at, (what, *events) = datetime.fromtimestamp(self.now, UTC), HISTORY_WORDS[thing.kind]
        line = {"kind": "event", "at": self.now, "event": events[not thing.is_alive], "what": what, "id": int(thing.id)}
        marked = {"domain": f"{thing.owner}.microcluster", "notes": f"microcluster {thing.owner}"}
        self.history.append(line | marked | {"host": thing.name, "per_hour": str(PRICE)})
        began, ended = (at, None) if thing.is_alive else (self.charges[thing.id].opened, at)
        row = Charge(thing.id, what, thing.name, "", began, ended, None, True, PRICE, Decimal(0), PRICE, "USD")
        self.charges[thing.id], self.things[thing.id] = row, thing
        if thing.kind == BADGE and not thing.is_alive:
            del self.things[thing.id]
        self.pages.append((self.now, dict(self.things)))
        return thing

    def answer(self, method: str, epoch: int, act: "Callable[[Market], Any]") -> Any:
        """Carry a call out, unless something is to go wrong with it or its process is dead since another epoch."""
        with self.lock:
            self.calls.append(method)
            number, dies_after = self.strike or (0, False)
            dies, was_dead = number == len(self.calls), self.epoch != epoch
            self.epoch += dies
            if was_dead or (dies and not dies_after):
                raise Killed
            faults = ("busy", "lost", "odd", "full", "nameless")
            fault = self.chance.choice(faults) if self.chance.random() < self.share else ""
            if fault in ("busy", "full"):
                raise CallError(method, fault, "the account did not do it")
            answer = act(self)
        if dies:
            raise Killed
        if fault == "nameless" and method == "order":
            raise OrderWithoutId(method, answer)
        if fault:
            raise CallError(method, fault, "the answer is not readable")
        return answer
