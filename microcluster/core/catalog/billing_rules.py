"""Billing rules: a part costs every started hour, and with a monthly limit at most that in a calendar month (UTC)."""

import math
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

DOLLARS = "USD"
HOUR = timedelta(hours=1)


@dataclass(frozen=True)
class Rate:
    """Dollars an hour, and at most in a calendar month; None where a month has no limit.

    Attributes:
        by_month: whether each calendar month is billed alone, so that the hour in which a month ends counts twice.
    """

    per_hour: Decimal
    per_month: Decimal | None = None
    by_month: bool = False

    def cost(self, opened: datetime, closed: datetime) -> Decimal:
        """Add up started hours; the first one counts from the first second."""
        total, begin = Decimal(0), opened
        while True:
            until = max(begin, min(closed, _next_month(begin))) if self.by_month else closed
            hours = max(1, math.ceil((until - begin) / HOUR))
            amount = self.per_hour * hours
            total += amount if self.per_month is None else min(amount, self.per_month)
            if until >= closed:
                return total
            begin = until

    def paid_until(self, opened: datetime, now: datetime) -> datetime:
        """Return the end of the newest started hour, which is ``now`` where the next one has not begun.

        That a started hour is billed whole is an assumption: a vendor only says that active hours are counted.
        """
        begin = opened
        while self.by_month and _next_month(begin) < now:
            begin = _next_month(begin)
        until = begin + HOUR * max(math.ceil((now - begin) / HOUR), 1)
        return min(until, _next_month(begin)) if self.by_month else until


def _next_month(moment: datetime) -> datetime:
    here = moment.astimezone(UTC)
    year, month = (here.year + 1, 1) if here.month == 12 else (here.year, here.month + 1)
    return datetime(year, month, 1, tzinfo=UTC)


def hostname(rank: int) -> str:
    """Return the name of a machine of a cluster."""
    return f"gpu-{rank}"


@dataclass(frozen=True)
class Part:
    """One billed part of a rental, with the machine, drive or network that it belongs to."""

    of: str
    what: str
    rate: Rate


@dataclass(frozen=True)
class Prices:
    """Everything that a stack rents, with who says what it costs."""

    parts: tuple[Part, ...]
    source: str

    @property
    def per_hour(self) -> Decimal:
        """Dollars an hour for all of it."""
        return sum((part.rate.per_hour for part in self.parts), Decimal(0))

    @property
    def per_month(self) -> Decimal:
        """Dollars at most in a calendar month for the parts that have a limit."""
        return sum((part.rate.per_month or Decimal(0) for part in self.parts), Decimal(0))

    @property
    def by_month(self) -> bool:
        """Whether each calendar month of a part is billed alone."""
        return any(part.rate.by_month for part in self.parts)

    def at(self, per_hour: Decimal, source: str) -> "Prices":
        """Return the same parts at another price of the whole, of which each has the same share as before."""
        share = per_hour / self.per_hour
        parts = (replace(part, rate=replace(part.rate, per_hour=part.rate.per_hour * share)) for part in self.parts)
        return Prices(tuple(parts), source)

    def lines(self) -> list[str]:
        """Say for people what each part costs, and all together; what is alike stands in one line."""
        alike: dict[tuple[str, Rate], list[str]] = {}
        for part in self.parts:
            alike.setdefault((part.what, part.rate), []).append(part.of)
        limit = f"parts with a limit cost at most ${plain(self.per_month)} a month together"
        monthly = limit if self.per_month else "nothing by the month"
        texts = []
        for (what, rate), of in alike.items():
            names = ", ".join(of) if len(of) <= 2 else f"{of[0]} to {of[-1]}"
            texts.append(f"{names}: {_said(rate, len(of))}: {what}")
        return [*texts, f"together: {dollars(self.per_hour)} an hour, {monthly}", f"source: {self.source}"]


def dollars(amount: Decimal) -> str:
    """Write dollars with as many digits as a price has, two at least and four at most."""
    exact = amount.quantize(Decimal("0.0001"))
    return f"${exact.quantize(Decimal('0.01')) if exact == exact.quantize(Decimal('0.01')) else exact.normalize():f}"


def money(amount: Decimal, currency: str) -> str:
    """Write an amount in the currency of an account, such as node hours."""
    return dollars(amount) if currency == DOLLARS else f"{plain(round(amount, 2))} {currency}"


def _said(rate: Rate, count: int) -> str:
    each = " each" if count > 1 else ""
    limit = "" if rate.per_month is None else f", at most ${plain(rate.per_month)} a month"
    return f"{dollars(rate.per_hour)} an hour{each}{limit}"


def plain(amount: Decimal) -> str:
    """Write an amount with the digits that it has."""
    return f"{amount.normalize():f}"
