"""Hours and dollars of a run, its cost so far, and how long a budget pays."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from heapq import heapify, heapreplace
from typing import Any

from microcluster.core.catalog.billing_rules import DOLLARS, Rate, money

HOUR_S = 3600
SHORTEST_MONTH_H = 28 * 24
CENT = Decimal("0.01")
YEAR, INSTANT = timedelta(days=365), timedelta(microseconds=1)
GUARD_RESERVE_H = 0.25
"""Hours before the end of its budget in which a guard stops, fetches and cancels: `microcluster.guard.decision.RESERVE`."""


@dataclass(frozen=True)
class Span:
    """A figure with its limits; ``high`` is infinite where only a lower limit is known."""

    low: float
    usual: float
    high: float

    @property
    def limits(self) -> tuple[float, float, float]:
        """Low, usual and high value."""
        return self.low, self.usual, self.high

    def text(self, form: str) -> str:
        """Write both limits, by the format of one number; equal ones once."""
        if math.isinf(self.high):
            return f"at least {form.format(self.low)}"
        low, high = form.format(self.low), form.format(self.high)
        return low if low == high else f"{low} to {high}"


def exactly(figure: float) -> Span:
    """Return a figure that is known."""
    return Span(figure, figure, figure)


def rental_hours(steps: Span, step_s: Span, preparation_h: Span) -> Span:
    """Return the hours from the order to the end of the last step."""
    parts = zip(steps.limits, step_s.limits, preparation_h.limits, strict=True)
    return Span(*(count * seconds / HOUR_S + before for count, seconds, before in parts))


def started_hours_cost(hours: Span, per_hour: Decimal) -> Span:
    """Return the dollars of so many hours, each billed whole once it has started."""
    return Span(*(each if math.isinf(each) else math.ceil(each) * float(per_hour) for each in hours.limits))


def budget_hours(hours: float, *, by_month: bool = False) -> int:
    """Return the started hours that a ``guard.budget`` has to pay, so that no guard ends a rental before so many hours are over.

    A started hour is billed whole; the guard begins its end `GUARD_RESERVE_H` before the hour that it could not pay, and keeps one
    started hour of everything.

    Args:
        hours: from the first order on: preparation, data and training.
        by_month: whether each calendar month is billed alone, so that the hour in which one ends counts twice.
    """
    return math.ceil(hours + GUARD_RESERVE_H) + 1 + (_months(hours) if by_month else 0)


def smallest_budget(
    per_hour: Decimal, hours: float, *, per_month: Decimal = Decimal(0), by_month: bool = False
) -> Decimal:
    """Return the smallest ``guard.budget`` in dollars that carries a rental of so many hours, as `budget_hours` counts them.

    Args:
        per_hour: the price of all that is rented, as the account or the catalog quotes it.
        per_month: what is billed whole at once for each month that begins, in dollars.
    """
    return per_hour * budget_hours(hours, by_month=by_month) + per_month * _months(hours)


def _months(hours: float) -> int:
    """Return how many month ends so many hours may have in them, or months they may begin."""
    return 1 + int(hours / SHORTEST_MONTH_H)


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
        """Price of the exact time, not of whole hours."""
        return self.hours * float(self.per_hour)


@dataclass(frozen=True)
class Cost:
    """Cost per hour and so far, replaced machines included; None where the account cannot be read."""

    per_hour: Decimal | None
    so_far: Decimal | None
    currency: str = DOLLARS
    next_hour: datetime | None = None
    """Begin of the next hour of the oldest open charge. Assumption: a started hour is billed in full."""
    emulated: bool = False
    """Whether the account is emulated on this computer, so that nobody pays."""

    @property
    def price(self) -> str:
        """Price of an hour in words."""
        if self.per_hour is None:
            return "a price that the account does not say now"
        return f"{self.amount(self.per_hour)} an hour{' (emulated)' if self.emulated else ''}"

    def amount(self, much: Decimal) -> str:
        """Write an amount in the account's currency."""
        return money(much, self.currency)

    def as_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "per_hour": None if self.per_hour is None else str(self.per_hour),
            "so_far": None if self.so_far is None else str(self.so_far.quantize(CENT)),
            "currency": self.currency,
            "emulated": self.emulated,
            "next_hour": self.next_hour.isoformat() if self.next_hour else None,
        }

    def __str__(self) -> str:
        """Return one short line."""
        if self.per_hour is None or self.so_far is None:
            return "unknown"
        beginning = f", the next one begins at {self.next_hour:%H:%M} UTC" if self.next_hour else ""
        label = " (emulated)" if self.emulated else ""
        if self.currency != DOLLARS:
            return f"{self.so_far.quantize(CENT)} {self.currency} so far{label}"
        return f"${self.so_far.quantize(CENT)} so far, ${self.per_hour.normalize():f}/hour{beginning}{label}"


def last_paid(dollars: Decimal, going_on: Iterable[tuple[datetime, Rate]], now: datetime) -> datetime | None:
    """Return when the first hour begins that ``dollars`` beyond what is billed now cannot pay; None where none does in a year.

    Args:
        going_on: of each thing that is billed: since when, and its price.
    """
    billed = [(since, rate) for since, rate in going_on if rate.per_hour]
    if billed and dollars < 0:
        return now
    hours = [(rate.paid_until(since, now), number) for number, (since, rate) in enumerate(billed)]
    heapify(hours)
    while hours and hours[0][0] < now + YEAR:
        begin, number = hours[0]
        since, rate = billed[number]
        dollars -= rate.per_hour
        if dollars < 0:
            return begin
        heapreplace(hours, (rate.paid_until(since, begin + INSTANT), number))
    return None
