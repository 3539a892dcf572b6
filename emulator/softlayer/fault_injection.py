"""The weather of calls: one seed decides what goes wrong with the n-th call of a method on an object, and nothing else does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

from emulator.softlayer.calls import SERVICE_PREFIX, Call

BEFORE, AFTER = "before", "after"  # the call is carried out, or not
BROKEN_TLS = "broken_tls"
DROP, HTML, EMPTY, TRUNCATED, ERROR_OBJECT = "drop", "html", "empty", "truncated", "error_object"
FAULTS = ("rate_limit", "internal_error", "application_error", "system_error", "public_error")
# How each kind may show; the first is what a scripted one-off is unless it says otherwise.
WAYS: dict[str, tuple[str, ...]] = {
    "error": ("http_503", "http_500", "http_502", "http_429", *FAULTS),
    "lost_call": (DROP,),
    "lost_reply": (DROP, "http_502", "http_500"),
    BROKEN_TLS: ("plain_bytes", "alert", "end", "reset"),  # the stream breaks after the call was carried out
    "malformed": (HTML, EMPTY, TRUNCATED, ERROR_OBJECT),
    "slow": ("late",),
    "stale": ("late",),
    "no_total": ("header",),  # a list without the header that says how long it is
    "bare_receipt": ("cut",),  # a receipt that does not name the guests
    "capacity": ("refused",),
}
NEVER_CARRIED_OUT = ("error", "lost_call", "capacity")


class WeatherError(ValueError):
    """The forecast or a scripted one-off cannot be read; the message is a sentence."""


@dataclass(frozen=True)
class Weather:
    """What happens to one call; without a kind it is fair."""

    kind: str | None = None
    way: str = ""
    when: str = AFTER
    seconds: float = 0.0  # real ones for a slow answer, the account's own for a stale list

    @property
    def strikes_first(self) -> bool:
        """Whether the call is not carried out at all."""
        return self.kind is not None and self.when == BEFORE


FAIR = Weather()


@dataclass(frozen=True)
class Forecast:
    """How likely each kind is, for all methods and for single ones, and how bad it gets."""

    rates: Mapping[str, float] = field(default_factory=dict)
    methods: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    slow_s: float = 2.0
    stale_s: float = 120.0

    def rates_of(self, method: str) -> dict[str, float]:
        """The rates for one method."""
        return {**self.rates, **self.methods.get(method, {})}

    def has(self, kind: str) -> bool:
        """Whether a kind may come at all."""
        return any(rates.get(kind) for rates in (self.rates, *self.methods.values()))


@dataclass
class OneOff:
    """Weather that a test has asked for: the next ``times`` calls of a method, of one subject if it is named."""

    method: str
    weather: Weather
    times: int = 1
    about: str | None = None

    def is_for(self, method: str, subject: str) -> bool:
        """Whether it strikes this call."""
        return self.times > 0 and self.method in ("*", method) and self.about in (None, subject)


class Sky:
    """Decides the weather of every call, and counts what it has sent."""

    def __init__(self, seed: int, forecast: Forecast) -> None:
        self.met: Counter[str] = Counter()
        self.one_offs: list[OneOff] = []
        self._seed = seed
        self._forecast = forecast
        self._seen: Counter[tuple[str, str]] = Counter()

    def chance(self, what: str, subject: str) -> Random:
        """The dice for the n-th time that something happens to a subject: the order of other things does not matter."""
        self._seen[what, subject] += 1
        return Random(f"{self._seed}|{what}|{subject}|{self._seen[what, subject]}")

    def over(self, call: Call, subject: str) -> Weather:
        """The weather of the next call."""
        dice = self.chance(call.name, subject)
        scripted = next((each for each in self.one_offs if each.is_for(call.name, subject)), None)
        if scripted:
            scripted.times -= 1
            weather = scripted.weather
        else:
            weather = drawn(dice, self._forecast, call)
        if weather.kind:
            self.met[weather.kind] += 1
        return weather


def drawn(dice: Random, forecast: Forecast, call: Call) -> Weather:
    """The weather that the dice give a call."""
    at = dice.random()
    for kind, rate in sorted(forecast.rates_of(call.name).items()):
        if at < rate:
            return _of_kind(kind, dice, forecast, call) if _can_meet(kind, call) else FAIR
        at -= rate
    return FAIR


def read_forecast(table: Mapping[str, Any]) -> Forecast:
    """The forecast in the settings' table ``weather``; what it does not know it refuses."""
    rest = dict(table)
    methods = {plain(name): _rates(rates, f"weather.methods.{name}") for name, rates in rest.pop("methods", {}).items()}
    bounds = {name: float(rest.pop(name)) for name in ("slow_s", "stale_s") if name in rest}
    return Forecast(_rates(rest, "weather"), methods, **bounds)


def read_one_off(wanted: Mapping[str, Any]) -> OneOff:
    """A one-off as a test sends it: ``method`` and ``kind``; ``way``, ``when``, ``seconds``, ``times``, ``about`` if it matters."""
    unknown = sorted(set(wanted) - {"method", "kind", "way", "when", "seconds", "times", "about"})
    kind = wanted.get("kind")
    if unknown or kind not in WAYS or not wanted.get("method"):
        raise WeatherError(f"A fault has a method, a kind of {', '.join(WAYS)}, and nothing named {unknown}.")
    way = wanted.get("way", WAYS[kind][0])
    if way not in WAYS[kind]:
        raise WeatherError(f"The weather '{kind}' comes as {', '.join(WAYS[kind])}, not as '{way}'.")
    when = wanted.get("when", BEFORE if kind in NEVER_CARRIED_OUT else AFTER)
    weather = Weather(kind, way, when, float(wanted.get("seconds", 0)))
    return OneOff(plain(wanted["method"]), weather, int(wanted.get("times", 1)), wanted.get("about"))


def plain(method: str) -> str:
    """A method's name without the prefix that every service has."""
    return method.removeprefix(SERVICE_PREFIX)


def _rates(table: Mapping[str, Any], where: str) -> dict[str, float]:
    unknown = sorted(set(table) - set(WAYS))
    if unknown:
        raise WeatherError(f"{where}: unknown weather {', '.join(unknown)}; there is {', '.join(WAYS)}.")
    rates = {kind: float(rate) for kind, rate in table.items()}
    if sum(rates.values()) > 1 or min(rates.values(), default=0) < 0:
        raise WeatherError(f"{where}: the rates are from 0 to 1 and add up to at most 1.")
    return rates


def _can_meet(kind: str, call: Call) -> bool:
    receipt = call.name == "Product_Order::placeOrder"
    only = {"stale": call.is_list, "no_total": call.is_list, "capacity": call.is_order, "bare_receipt": receipt}
    return only.get(kind, True)


def _of_kind(kind: str, dice: Random, forecast: Forecast, call: Call) -> Weather:
    way = dice.choice(WAYS[kind])
    when = BEFORE if kind in NEVER_CARRIED_OUT else AFTER
    if kind == "malformed" and not call.is_read:
        when = dice.choice((BEFORE, AFTER))
    worst = {"slow": forecast.slow_s, "stale": forecast.stale_s}.get(kind, 0.0)
    return Weather(kind, way, when, dice.uniform(0, worst))
