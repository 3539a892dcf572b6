"""Months on the account's calendar: the day on which a monthly charge falls due again."""

from __future__ import annotations

import calendar
from datetime import datetime

from emulator.clock import CENTRAL

MONTHS_PER_YEAR = 12


def anniversary(first: float, number: int) -> float:
    """The same day and time ``number`` months later; in a shorter month its last day."""
    begun = datetime.fromtimestamp(first, CENTRAL)
    years, month = divmod(begun.month - 1 + number, MONTHS_PER_YEAR)
    year, month = begun.year + years, month + 1
    day = min(begun.day, calendar.monthrange(year, month)[1])
    return begun.replace(year=year, month=month, day=day).timestamp()


def begun_before(first: float, moment: float) -> int:
    """How many anniversaries lie before ``moment``; the beginning itself is none."""
    start, end = (datetime.fromtimestamp(each, CENTRAL) for each in (first, moment))
    number = max(0, (end.year - start.year) * MONTHS_PER_YEAR + end.month - start.month)
    return number if number and anniversary(first, number) < moment else max(0, number - 1)


def next_anniversary(first: float, moment: float) -> float:
    """The first anniversary after ``moment``."""
    number = begun_before(first, moment) + 1
    after = anniversary(first, number)
    return after if after > moment else anniversary(first, number + 1)
