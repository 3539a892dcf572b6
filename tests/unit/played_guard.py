"""A rental in virtual time: an account that bills started hours, machines with a run, and the hands of any number of guards."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from microcluster.accounts.registry import AccountSettings
from microcluster.accounts.shared.account import Extension, Terms
from microcluster.accounts.shared.errors import AccountError
from microcluster.accounts.shared.receipt import Charge
from microcluster.accounts.shared.rental import Rental
from microcluster.analysis.run_state import Outcome
from microcluster.core.catalog.billing_rules import Rate
from microcluster.core.home import Owner
from microcluster.guard.decision import Limits
from microcluster.guard.enforcement import Guard
from microcluster.guard.records import GuardLog, Record

BEGAN = datetime(2026, 11, 23, 8, 0, tzinfo=UTC)
RATE = Rate(Decimal(4))


def charge(opened: datetime, until: datetime, rate: Rate = RATE, **more: object) -> Charge:
    """Return what something at this rate was billed until then."""
    fixed = {"id": "1", "description": "", "host": "gpu-0", "category": "guest", "closed": None, "ends": None}
    price = {"per_hour": rate.per_hour, "per_month": rate.per_month or Decimal(0), "by_month": rate.by_month}
    own = {"opened": opened, "hourly": rate.per_month is None, "so_far": rate.cost(opened, until), "currency": "USD"}
    return Charge(**{**fixed, **price, **own, **more})


def ran(state: str, cause: str | None = None, **more: object) -> Outcome:
    return Outcome(state, cause=cause, **more)


class Killed(BaseException):
    """The process of a guard ends here, as by kill -9."""


class PlayedLog(GuardLog):
    """A book in memory: a disk is slow, and a test of its own."""

    def __init__(self) -> None:
        self.kept: dict[str, Record] = {}

    def write(self, record: Record) -> None:
        self.kept[record.who] = record

    def forget(self) -> None:
        self.kept.clear()

    def records(self) -> list[Record]:
        return sorted(self.kept.values(), key=lambda each: each.at, reverse=True)


@dataclass
class World:
    """The account with its machines; whatever happens takes time.

    Attributes:
        ended: when each machine was cancelled.
        cuts: what does not answer: "account", "machines".
        refusals: how many cancellations the account accepts without carrying them out.
        fails: why a fetch fails.
        dies_in: the hands' work in which the next guard is killed, before or after it is done.
    """

    now: datetime = BEGAN
    opened: list[datetime] = field(default_factory=lambda: [BEGAN, BEGAN + timedelta(minutes=2)])
    ended: dict[int, datetime] = field(default_factory=dict)
    run: Outcome = ran("running", idle_s=0.0, armed=True)
    terms: Terms | None = None
    extension: Extension = field(default_factory=Extension)
    cuts: set[str] = field(default_factory=set)
    cut_until: datetime | None = None
    refusals: int = 0
    fails: str = ""
    stubborn: bool = False
    dies_in: str = ""
    stop_s: float = 60
    fetch_s: float = 300
    cancel_s: float = 60
    holder: str = ""
    held_since: datetime = BEGAN
    holds: datetime | None = None
    holds_idle_s: float | None = None
    saved: bool = False
    is_busy: bool = False
    fetched: bool = False
    log: list[str] = field(default_factory=list)
    log_of_guards: PlayedLog = field(default_factory=PlayedLog)
    during: dict[str, Callable[[], object]] = field(default_factory=dict)

    @property
    def is_over(self) -> bool:
        return len(self.ended) == len(self.opened)

    @property
    def bill(self) -> Decimal:
        return sum(
            (RATE.cost(since, self.ended.get(one, self.now)) for one, since in enumerate(self.opened)), Decimal(0)
        )

    @property
    def last_end(self) -> datetime:
        return max(self.ended.values())

    def pass_(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)
        if self.cut_until and self.now >= self.cut_until:
            self.cuts, self.cut_until = set(), None
        if self.run.idle_s is not None and "idle" in self.log:
            self.run = replace(self.run, idle_s=self.run.idle_s + seconds)

    def rental(self) -> Rental:
        ends = [self.ended.get(one) for one in range(len(self.opened))]
        rows = (charge(since, end or self.now, closed=end) for since, end in zip(self.opened, ends, strict=True))
        return Rental(self.now, tuple(rows))

    def end(self) -> None:
        for one in range(len(self.opened)):
            self.ended.setdefault(one, self.now)

    def fall_idle(self) -> None:
        self.log.append("idle")


@dataclass
class PlayedActions:
    """What one guard does in this world."""

    world: World
    name: str

    @contextmanager
    def alone(self, *, longest_s: float) -> Iterator[bool]:
        world = self.world
        mine = not world.holder
        if mine:
            world.holder, world.held_since = self.name, world.now
        elif (world.now - world.held_since).total_seconds() > longest_s:
            world.log.append(f"{self.name} interrupts {world.holder}")
            world.holder = ""
        try:
            yield mine
        finally:
            if world.holder == self.name:
                world.holder = ""

    def now(self) -> datetime:
        return self.world.now

    def rental(self, limits: Limits) -> tuple[Rental, Terms | None, Extension]:
        world = self.world
        if "account" in world.cuts:
            raise AccountError("opening the account: nobody answers.")
        rental = world.rental()
        if world.terms:
            rental = replace(rental, id=world.terms.rental_id("1", Owner("v100", "1f3a9c42")))
        return rental, world.terms, world.extension

    def settings(self) -> AccountSettings:
        return AccountSettings("softlayer")

    def account_id(self) -> str:
        return "1"

    def run(self) -> Outcome | None:
        return None if "machines" in self.world.cuts else self.world.run

    def enforce(self, stop_at: datetime | None, idle_s: float | None) -> None:
        if "machines" not in self.world.cuts:
            self.world.holds, self.world.holds_idle_s = stop_at, idle_s

    def stop(self) -> str:
        return self._do("stop", self.world.stop_s, self._stop)

    def fetch(self, limit_s: float) -> str:
        world = self.world
        if world.fetch_s > limit_s:
            world.pass_(limit_s)
            return "it took too long"
        return self._do("fetch", world.fetch_s, self._fetch)

    def is_busy(self) -> bool:
        return self.world.is_busy

    def cancel(self, *, pressing: bool) -> str:
        if self.world.is_busy:
            self.world.is_busy = not pressing
            return "stack local is busy"
        return self._do("cancel", self.world.cancel_s, self._cancel)

    def _do(self, what: str, seconds: float, act: Callable[[], str]) -> str:
        world = self.world
        if world.dies_in == f"before {what}":
            world.dies_in = ""
            raise Killed
        world.log.append(what)
        world.pass_(seconds)
        world.during.pop(what, lambda: None)()
        if world.holder != self.name:  # Interrupted by another one.
            raise Killed
        answer = act()
        if world.dies_in == f"after {what}":
            world.dies_in = ""
            raise Killed
        return answer

    def _stop(self) -> str:
        world = self.world
        if "machines" in world.cuts:
            return "no answer in time"
        if world.stubborn:
            return "process 77 would not end"
        if world.run.state in ("running", "stalled"):
            world.run, world.saved = ran("stopped"), True
        return ""

    def _fetch(self) -> str:
        world = self.world
        if "machines" in world.cuts or world.fails:
            return world.fails or "the machines do not answer"
        world.fetched = True
        return ""

    def _cancel(self) -> str:
        world = self.world
        if "account" in world.cuts:
            return "nobody answers"
        if world.refusals:
            world.refusals -= 1
            return "still billed"
        world.end()
        return ""


def guard(world: World, limits: Limits, name: str = "timer@laptop") -> Guard:
    return Guard(name, limits, PlayedActions(world, name), world.log_of_guards, world.log.append)


def look(one: Guard) -> Record | None:
    """Let a guard look; None where it is killed at it."""
    try:
        return one.look()
    except Killed:
        return None


def watch(world: World, *guards: Guard, hours: float, every_s: float = 60) -> Record | None:
    """Let all guards look every minute until it is over or the time is."""
    until, record = world.now + timedelta(hours=hours), None
    while world.now < until and not world.is_over:
        for one in guards:
            record = look(one) or record
        world.pass_(every_s)
    return record
