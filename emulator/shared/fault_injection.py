"""Fault injection: the seed alone chooses what goes wrong with the n-th call of a method on an object."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Annotated, Any, Protocol

from pydantic import ConfigDict, Field, ValidationError
from pydantic import dataclasses as checked

from emulator.shared.validation import problems_of

BEFORE, AFTER = "before", "after"  # before: the call is not carried out; after: it is
BROKEN_TLS = "broken_tls"
DROP, HTML, EMPTY, TRUNCATED, ERROR_OBJECT = "drop", "html", "empty", "truncated", "error_object"
MOST_SECONDS, MOST_TIMES = 3600, 1_000_000  # of one scripted fault
HTTP_ERRORS = ("http_503", "http_500", "http_502", "http_429")


class FaultInjectionError(ValueError):
    """The rates or a scripted fault cannot be read; the message is a sentence."""


class Call(Protocol):
    """A call of any vendor, as fault injection sees it."""

    name: str
    is_read: bool
    is_list: bool
    identifier: Any  # of the object that it is about
    detail: str  # what tells calls of one method apart that are about no object with a name


@dataclass(frozen=True)
class FaultKind:
    """One kind of fault: its ways (a scripted fault is the first one), and the calls that it can hit."""

    ways: tuple[str, ...]
    when: str = AFTER
    hits: Callable[[Any], bool] = lambda call: True


COMMON_KINDS: Mapping[str, FaultKind] = {
    "error": FaultKind(HTTP_ERRORS, BEFORE),
    "lost_call": FaultKind((DROP,), BEFORE),
    "lost_reply": FaultKind((DROP, "http_502", "http_500")),
    BROKEN_TLS: FaultKind(("plain_bytes", "alert", "end", "reset")),  # the stream breaks after the call
    "malformed": FaultKind((HTML, EMPTY, TRUNCATED, ERROR_OBJECT)),
    "slow": FaultKind(("late",)),
}

HELD = "held"
STALE, REORDERED = "stale", "reordered"
LIST_KINDS: Mapping[str, FaultKind] = {
    STALE: FaultKind(("late",), hits=lambda call: call.is_list),  # the list as it was some time ago
    REORDERED: FaultKind(("shuffled",), hits=lambda call: call.is_list),  # its pages come out of different orders
}


@dataclass(frozen=True)
class InjectedFault:
    """The fault of one call; without a kind there is none."""

    kind: str | None = None
    way: str = ""
    when: str = AFTER
    seconds: float = 0.0  # real ones for a slow answer, the account's own for a stale list and a held call

    @property
    def prevents_call(self) -> bool:
        """Whether the call is not carried out."""
        return self.kind is not None and self.when == BEFORE


NO_FAULT = InjectedFault()


@dataclass(frozen=True)
class FaultRates:
    """Probability of each kind of fault, and the longest delays."""

    rates: Mapping[str, float] = field(default_factory=dict)
    slow_s: float = 2.0
    stale_s: float = 120.0
    held_s: float = 130.0


@checked.dataclass(frozen=True, config=ConfigDict(strict=True, extra="forbid"))
class WantedFault:
    """A fault that a test asks for."""

    method: Annotated[str, Field(min_length=1)]
    kind: str
    way: str = ""
    seconds: Annotated[float, Field(ge=0, le=MOST_SECONDS)] = 0
    times: Annotated[int, Field(ge=1, le=MOST_TIMES)] = 1
    about: str | None = None


@dataclass
class ScriptedFault:
    """A fault that a test asked for, on the next ``times`` calls of a method (and of one fault key)."""

    method: str
    fault: InjectedFault
    times: int = 1
    about: str | None = None

    def hits(self, method: str, key: str) -> bool:
        """Whether the scripted fault hits a call."""
        return self.times > 0 and self.method in ("*", method) and self.about in (None, key)


@dataclass(frozen=True)
class FaultModel:
    """The kinds of fault that a vendor's account has, and the prefix that its methods may be written with."""

    kinds: Mapping[str, FaultKind]
    method_prefix: str = ""

    def read_rates(self, table: Mapping[str, Any]) -> FaultRates:
        """Read the settings' table ``faults``; refuse what it does not know."""
        rest = dict(table)
        delays = {name: float(rest.pop(name)) for name in ("slow_s", "stale_s", "held_s") if name in rest}
        return FaultRates(self._rates(rest), **delays)

    def read_scripted(self, wanted: Mapping[str, Any]) -> ScriptedFault:
        """Read a test's request: ``method`` and ``kind``, and optional members."""
        try:
            scripted = WantedFault(**wanted)
        except ValidationError as wrong:
            raise FaultInjectionError(f"Reading the wanted fault: {problems_of(wrong)}.") from wrong
        if scripted.kind not in self.kinds:
            raise FaultInjectionError(f"There is no fault '{scripted.kind}'; there are {', '.join(self.kinds)}.")
        ways = self.kinds[scripted.kind].ways
        if (scripted.way or ways[0]) not in ways:
            raise FaultInjectionError(
                f"The fault '{scripted.kind}' comes as {', '.join(ways)}, not as '{scripted.way}'."
            )
        fault = InjectedFault(scripted.kind, scripted.way or ways[0], self.kinds[scripted.kind].when, scripted.seconds)
        return ScriptedFault(scripted.method.removeprefix(self.method_prefix), fault, scripted.times, scripted.about)

    def draw(self, random: Random, rates: FaultRates, call: Call) -> InjectedFault:
        """Draw what goes wrong with a call."""
        drawn = random.random()
        for name, rate in sorted(rates.rates.items()):
            if drawn < rate:
                return self._of_kind(name, random, rates, call) if self.kinds[name].hits(call) else NO_FAULT
            drawn -= rate
        return NO_FAULT

    def _of_kind(self, name: str, random: Random, rates: FaultRates, call: Call) -> InjectedFault:
        kind = self.kinds[name]
        way, when = random.choice(kind.ways), kind.when
        if name == "malformed" and not call.is_read:
            when = random.choice((BEFORE, AFTER))
        longest_s = {"slow": rates.slow_s, "stale": rates.stale_s, HELD: rates.held_s}.get(name, 0.0)
        return InjectedFault(name, way, when, random.uniform(0, longest_s))

    def _rates(self, table: Mapping[str, Any]) -> dict[str, float]:
        unknown = sorted(set(table) - set(self.kinds))
        if unknown:
            known = ", ".join(self.kinds)
            raise FaultInjectionError(f"faults: unknown faults {', '.join(unknown)}; there are {known}.")
        rates = {kind: float(rate) for kind, rate in table.items()}
        if sum(rates.values()) > 1 or min(rates.values(), default=0) < 0:
            raise FaultInjectionError("faults: the rates are from 0 to 1 and add up to at most 1.")
        return rates


class FaultInjector:
    """Chooses the fault of every call, and counts what it has injected."""

    def __init__(self, seed: int, model: FaultModel, rates: FaultRates) -> None:
        self.model = model
        self.injected: Counter[str] = Counter()
        self.scripted: list[ScriptedFault] = []
        self._seed = seed
        self._rates = rates
        self._events: Counter[tuple[str, str]] = Counter()

    def random_for(self, event: str, key: str) -> Random:
        """Random numbers for the n-th event of this name and key; other events do not change them."""
        self._events[event, key] += 1
        return Random(f"{self._seed}|{event}|{key}|{self._events[event, key]}")

    def next_fault(self, call: Call, key: str) -> InjectedFault:
        """Choose the fault of the next call about the object with this key."""
        random = self.random_for(call.name, key)
        scripted = next((each for each in self.scripted if each.hits(call.name, key)), None)
        if scripted:
            scripted.times -= 1
        fault = scripted.fault if scripted else self.model.draw(random, self._rates, call)
        if fault.kind:
            self.injected[fault.kind] += 1
        return fault
