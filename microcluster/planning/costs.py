"""Hours and dollars of a run, the hour that is billed next, and how much a crash may cost."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import accumulate

from microcluster.planning.prediction import BAND

HOUR_S = 3600
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


def next_started_hour(opened: datetime, now: datetime) -> datetime:
    """Return when the next hour begins of something that has been billed since ``opened``.

    That a started hour is billed whole is an assumption: the vendor only says that active hours are counted.
    """
    return opened + timedelta(hours=max(math.floor((now - opened) / timedelta(hours=1)), 0) + 1)


def last_paid(dollars: Decimal, prices: Iterable[tuple[datetime, Decimal]], now: datetime) -> datetime | None:
    """Return when the first hour would begin that ``dollars`` beyond what is billed now cannot pay; None where nothing costs.

    Args:
        prices: of each thing that is billed: since when, and how much an hour.
    """
    steps = sorted((_paid_until(opened, now), price) for opened, price in prices if price)
    if not steps:
        return None
    if dollars < 0:
        return now
    whole, rest = divmod(dollars, sum(price for _, price in steps))
    paid = accumulate(price for _, price in steps)
    first = next(moment for (moment, _), sum_ in zip(steps, paid, strict=True) if sum_ > rest)
    return first + timedelta(hours=int(whole))


def _paid_until(opened: datetime, now: datetime) -> datetime:
    """Return the end of the newest started hour, which is ``now`` where the next one has not begun."""
    return opened + timedelta(hours=max(math.ceil((now - opened) / timedelta(hours=1)), 1))


@dataclass(frozen=True)
class AtRisk:
    """What is lost at most when a run ends just before a checkpoint."""

    steps: int
    seconds: float
    dollars: float


def at_risk(steps: int, step_s: float, per_hour: Decimal, max_steps: int) -> AtRisk:
    """Return what a crash may cost with a checkpoint every ``steps``; the last step always saves."""
    bill = Bill(min(steps, max_steps) * step_s, per_hour)
    return AtRisk(min(steps, max_steps), bill.seconds, bill.dollars)


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
