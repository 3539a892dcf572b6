"""SoftLayer's dates: how they are written, and the months after which a monthly charge is due again."""

import calendar
from datetime import datetime, timedelta, timezone

# SoftLayer reports US Central time; the emulator leaves daylight saving out.
CENTRAL = timezone(timedelta(hours=-6))
MONTHS_PER_YEAR = 12


def iso(moment: float | None) -> str | None:
    """A date as SoftLayer writes it: a string with its offset."""
    return None if moment is None else datetime.fromtimestamp(moment, CENTRAL).isoformat(timespec="seconds")


def anniversary(first: float, number: int) -> float:
    """The date ``number`` months after ``first``, at the same time of day; in a shorter month its last day."""
    start = datetime.fromtimestamp(first, CENTRAL)
    years, month = divmod(start.month - 1 + number, MONTHS_PER_YEAR)
    year, month = start.year + years, month + 1
    day = min(start.day, calendar.monthrange(year, month)[1])
    return start.replace(year=year, month=month, day=day).timestamp()


def anniversaries_before(first: float, moment: float) -> int:
    """The number of anniversaries before ``moment``; the start itself is none."""
    number = 0
    while anniversary(first, number + 1) < moment:
        number += 1
    return number


def next_anniversary(first: float, moment: float) -> float:
    """The first anniversary from ``moment`` on."""
    return anniversary(first, anniversaries_before(first, moment) + 1)
