"""Hours and dollars of a run, how long a budget pays, and the steps between checkpoints that keep a crash cheap."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from heapq import heapify, heapreplace

from core.catalog.prices import Rate
from microcluster.planning.prediction import BAND

HOUR_S = 3600
YEAR, INSTANT = timedelta(days=365), timedelta(microseconds=1)
MOST_MINUTES, MOST_DOLLARS = 10, 1
"""The default limits of what a crash may cost, in time and in money; the lower one decides."""
WRITE_S = (5, 9)
"""Seconds to write a checkpoint of 0.85 GB, on the fastest and the slowest disk that is sold."""
MOST_STEPS = 5000


@dataclass(frozen=True)
class Bill:
    """The cost of machines for some seconds; ``per_hour`` is the price of all of them in dollars."""

    seconds: float
    per_hour: Decimal

    @property
    def hours(self) -> float:
        return self.seconds / HOUR_S

    @property
    def dollars(self) -> float:
        """Not rounded to whole hours."""
        return self.hours * float(self.per_hour)


def last_paid(dollars: Decimal, going_on: Iterable[tuple[datetime, Rate]], now: datetime) -> datetime | None:
    """Return when the first hour begins that ``dollars`` beyond what is billed now cannot pay; None where none does in a year.

    Args:
        going_on: of each thing that is billed: since when, and its price.
    """
    things = [(since, rate) for since, rate in going_on if rate.per_hour]
    if things and dollars < 0:
        return now
    hours = [(rate.paid_until(since, now), number) for number, (since, rate) in enumerate(things)]
    heapify(hours)
    while hours and hours[0][0] < now + YEAR:
        begin, number = hours[0]
        since, rate = things[number]
        dollars -= rate.per_hour
        if dollars < 0:
            return begin
        heapreplace(hours, (rate.paid_until(since, begin + INSTANT), number))
    return None


def interval(step_s: float, per_hour: Decimal) -> int:
    """Return the steps between checkpoints that keep both limits, also at the upper end of the prediction's band.

    Two digits, rounded down; at least 1. The length of the run does not matter: raising ``maxSteps`` must continue the same run,
    and another interval would make another run.
    """
    by_money = MOST_DOLLARS * HOUR_S / float(per_hour) if per_hour > 0 else math.inf
    limit_s = min(MOST_MINUTES * 60, by_money)
    steps = min(max(math.floor(limit_s / (step_s * (1 + BAND))), 1), MOST_STEPS)
    unit = 10 ** max(len(str(steps)) - 2, 0)
    return steps // unit * unit
