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
    """The same day and time ``number`` months later; in a shorter month its last day."""
    start = datetime.fromtimestamp(first, CENTRAL)
    years, month = divmod(start.month - 1 + number, MONTHS_PER_YEAR)
    year, month = start.year + years, month + 1
    day = min(start.day, calendar.monthrange(year, month)[1])
    return start.replace(year=year, month=month, day=day).timestamp()


def anniversaries_before(first: float, moment: float) -> int:
    """How many anniversaries lie before ``moment``; the start itself is none."""
    start, end = (datetime.fromtimestamp(each, CENTRAL) for each in (first, moment))
    number = max(0, (end.year - start.year) * MONTHS_PER_YEAR + end.month - start.month)
    return number if number and anniversary(first, number) < moment else max(0, number - 1)


def next_anniversary(first: float, moment: float) -> float:
    """The first anniversary after ``moment``."""
    number = anniversaries_before(first, moment) + 1
    after = anniversary(first, number)
    return after if after > moment else anniversary(first, number + 1)
