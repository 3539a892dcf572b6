"""Offers for a job: hours and dollars of each, and which is the better buy. Pure.

Every alternative trains on as many samples as the stack file's own run. A bill is the started hours of all machines, from the
order to the end, so it has the preparation in it.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal

from agent import step_time_model
from microcluster.planning.run_cost import HOUR_S, Span, exactly, rental_hours, smallest_budget, started_hours_cost

MILLION = 1_000_000
WORTH_HOURS = 0.8
"""A further machine is worth its price only where it leaves at most this share of the hours."""
OWN, CHEAPEST, FASTEST, IN_TIME = "this stack", "cheapest", "fastest within budget", "cheapest before deadline"
"""Marks of an alternative."""


@dataclass(frozen=True)
class Offer:
    """Machines that are sold.

    Attributes:
        machine: the vendor's name of one of them.
        gpus: of each machine.
        port_mbps: line rate between them; None where nobody orders a port.
        precision: in which the job computes, where its section has one.
        per_hour: the price of all of them, in dollars.
        keys: what a stack file says to rent them, by path, for example ``{"cluster.nodes": 1}``.
        by_month: whether the account bills each calendar month alone.
    """

    machine: str
    gpu: str
    gpus: int
    nodes: int
    port_mbps: int | None
    precision: str | None
    per_hour: Decimal
    keys: Mapping[str, object]
    by_month: bool = False


@dataclass(frozen=True)
class Pace:
    """The time of one step on an offer.

    Attributes:
        seconds: with their limits, over all links that the machines may have.
        compute_s: of it, what the GPUs compute; None where nobody knows.
        samples: that all ranks together take in one step.
        basis: where they come from, for people.
        links: seconds by the kind of link, where they depend on it.
        wire_bytes: what each network card sends in a step.
    """

    seconds: Span
    compute_s: float | None
    samples: float
    basis: str
    links: Mapping[str, Span] = field(default_factory=dict)
    wire_bytes: float = 0


@dataclass(frozen=True)
class Alternative:
    """One offer with what the job takes on it.

    Attributes:
        samples: of the whole run; with limits where a loss, not a number of steps, ends it.
        preparation: hours from the order to the first step, data included.
    """

    offer: Offer
    pace: Pace
    samples: Span
    preparation: Span

    @property
    def steps(self) -> Span:
        """Steps of the whole run."""
        return Span(*(math.ceil(each / self.pace.samples) for each in self.samples.limits))

    @property
    def exposed_share(self) -> float | None:
        """The share of a usual step that waits for the network."""
        compute_s, seconds = self.pace.compute_s, self.pace.seconds
        return None if compute_s is None or math.isinf(seconds.high) else 1 - compute_s / seconds.usual

    @property
    def hours(self) -> Span:
        """Hours from the order to the end, with the limits of step time, steps and preparation."""
        return rental_hours(self.steps, self.pace.seconds, self.preparation)

    @property
    def dollars(self) -> Span:
        """Dollars of the started hours."""
        return started_hours_cost(self.hours, self.offer.per_hour)

    @property
    def budget(self) -> float:
        """The dollars of ``guard.budget`` that surely carry it to its end, in dollars; infinite where only a lower limit is known."""
        hours, month = self.hours.high, self.offer.by_month
        return hours if math.isinf(hours) else float(smallest_budget(self.offer.per_hour, hours, by_month=month))

    def on(self, link: str) -> "Alternative":
        """Return the same on machines with that kind of link."""
        return replace(self, pace=replace(self.pace, seconds=self.pace.links[link]))

    def by_price(self) -> tuple[bool, float, float]:
        """Return a sort key: the cheaper first, of equal ones the faster, and those without an upper limit last."""
        return math.isinf(self.hours.high), self.dollars.usual, self.hours.usual

    @property
    def per_million(self) -> float:
        """Dollars for a million samples, everything included."""
        return self.dollars.usual / self.samples.usual * MILLION

    @property
    def keys(self) -> dict[str, object]:
        """Keys of the stack file that choose it."""
        return {**self.offer.keys, "job.maxSteps": self.steps.usual}


Marks = Mapping[str, Alternative | None]
"""Marks, each with its alternative; None where no alternative fits."""


def choose(rows: Sequence[Alternative], *, budget: float = 0, deadline_h: float = 0) -> Marks:
    """Choose by the usual figures; what a guard might end before its upper limit, or is late at it, does not fit (0 for no limit)."""
    affordable = [row for row in rows if budget and row.budget <= budget]
    in_time = [row for row in rows if deadline_h and row.hours.high <= deadline_h]
    return {
        OWN: next((row for row in rows if not row.offer.keys), None),
        CHEAPEST: _cheapest(rows),
        FASTEST: min(affordable, key=lambda row: (row.hours.usual, row.dollars.usual), default=None),
        IN_TIME: _cheapest(in_time),
    }


def _cheapest(rows: Iterable[Alternative]) -> Alternative | None:
    return min(rows, key=Alternative.by_price, default=None)


def fewer_machines(rows: Sequence[Alternative], own: Alternative) -> Alternative | None:
    """Return the cheapest alternative with fewer machines of the same kind that may make ``own`` a bad buy, or None.

    On some link it is cheaper, and the further machines save less than a fifth of its hours.
    """
    alike = [
        row
        for row in rows
        if (row.offer.machine, row.offer.precision) == (own.offer.machine, own.offer.precision)
        and row.offer.nodes < own.offer.nodes
        and row.dollars.low < own.dollars.high
        and own.hours.high > WORTH_HOURS * row.hours.low
    ]
    return _cheapest(alike)


def is_surely_better(fewer: Alternative, own: Alternative) -> bool:
    """Return whether the further machines are a bad buy over the whole band, also where their links are the fastest.

    Both take the same samples, however many a loss may need.
    """
    fewer, own = (replace(row, samples=exactly(row.samples.usual)) for row in (fewer, own))
    return fewer.dollars.high < own.dollars.low and own.hours.low > WORTH_HOURS * fewer.hours.high


def worth_above_mbps(fewer: Alternative, own: Alternative) -> tuple[float | None, float | None]:
    """Return the line rates in Mb/s from which the further machines save a fifth of the hours, and are cheaper; None for none.

    By the usual figures and the law of the ring, solved for the link.
    """
    cheaper_h = math.ceil(fewer.dollars.usual / float(own.offer.per_hour)) - 1
    return _line_mbps(own, WORTH_HOURS * fewer.hours.usual), _line_mbps(own, cheaper_h)


def _line_mbps(own: Alternative, hours: float) -> float | None:
    """Return the line rate on which a run takes so many hours from the order to the end."""
    step_s = (hours - own.preparation.usual) * HOUR_S / own.steps.usual
    return step_time_model.line_mbps(step_s, own.pace.compute_s, own.pace.wire_bytes)
