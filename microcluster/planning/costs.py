"""Hours and dollars of a run, the hour that is billed next, and how long a budget pays."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import accumulate

HOUR_S = 3600


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
