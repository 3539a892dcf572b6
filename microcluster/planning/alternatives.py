"""What could be rented for a job: hours and dollars of each offer, and which is the better buy. Pure.

Every alternative trains on as many samples as the stack file's own run. A bill is the started hours of all machines, from the
order to the end, so it has the preparation in it.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from microcluster.planning.run_cost import HOUR_S

MILLION = 1_000_000
WORTH_HOURS = 0.8
"""A further machine is worth its price only where it leaves at most this share of the hours."""
OWN, CHEAPEST, FASTEST, IN_TIME = "this stack", "cheapest", "fastest within budget", "cheapest before deadline"
"""What an alternative is marked as."""


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
    """

    machine: str
    gpu: str
    gpus: int
    nodes: int
    port_mbps: int | None
    precision: str | None
    per_hour: Decimal
    keys: Mapping[str, object]


@dataclass(frozen=True)
class Pace:
    """The time of one step on an offer.

    Attributes:
        exposed_s: of it, what waits for the network; None where nobody knows.
        samples: that all ranks together take in one step.
        band: the share by which the seconds may be wrong; None where they are a lower limit.
        basis: where they come from, for people.
    """

    seconds: float
    exposed_s: float | None
    samples: float
    band: float | None
    basis: str


@dataclass(frozen=True)
class Span:
    """A figure with its limits."""

    low: float
    usual: float
    high: float


@dataclass(frozen=True)
class Alternative:
    """One offer with what the job takes on it; ``hours`` are from the order to the end."""

    offer: Offer
    pace: Pace
    samples: float
    preparation: Span

    @property
    def steps(self) -> int:
        return math.ceil(self.samples / self.pace.samples)

    @property
    def exposed_share(self) -> float | None:
        """The share of a step that waits for the network."""
        return None if self.pace.exposed_s is None else self.pace.exposed_s / self.pace.seconds

    @property
    def hours(self) -> Span:
        """Hours from the order to the end, with the limits of step time and preparation; without a band the high one is infinite."""
        training_h, band = self.steps * self.pace.seconds / HOUR_S, self.pace.band
        high = math.inf if band is None else training_h * (1 + band) + self.preparation.high
        low = training_h * (1 - (band or 0)) + self.preparation.low
        return Span(low, training_h + self.preparation.usual, high)

    @property
    def dollars(self) -> Span:
        """What the started hours cost."""
        hours, price = self.hours, float(self.offer.per_hour)
        high = math.inf if math.isinf(hours.high) else math.ceil(hours.high) * price
        return Span(math.ceil(hours.low) * price, math.ceil(hours.usual) * price, high)

    def by_price(self) -> tuple[float, float]:
        """Return what puts the cheaper one first, of equal ones the faster."""
        return self.dollars.usual, self.hours.usual

    @property
    def per_million(self) -> float:
        """Dollars for a million samples, everything included."""
        return self.dollars.usual / self.samples * MILLION

    @property
    def keys(self) -> dict[str, object]:
        """What the stack file has to say."""
        return {**self.offer.keys, "job.maxSteps": self.steps}


Marks = Mapping[str, Alternative | None]
"""Which alternative has which mark; None where nothing fits."""


def choose(rows: Sequence[Alternative], *, budget: float = 0, deadline_h: float = 0) -> Marks:
    """Choose by the usual figures; what may break budget or deadline (0 for none) at its upper limit does not fit."""
    affordable = [row for row in rows if budget and row.dollars.high <= budget]
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
    """Return the alternative with fewer machines of the same kind that makes ``own`` a bad buy, or None.

    It is cheaper, and the further machines save less than a fifth of its hours.
    """
    alike = [
        row
        for row in rows
        if (row.offer.machine, row.offer.precision) == (own.offer.machine, own.offer.precision)
        and row.offer.nodes < own.offer.nodes
        and row.dollars.usual < own.dollars.usual
        and own.hours.usual > WORTH_HOURS * row.hours.usual
    ]
    return _cheapest(alike)
