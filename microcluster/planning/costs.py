"""Hours and dollars of a run, and how long a budget pays."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from heapq import heapify, heapreplace

from core.catalog.prices import Rate

HOUR_S = 3600
YEAR, INSTANT = timedelta(days=365), timedelta(microseconds=1)


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
