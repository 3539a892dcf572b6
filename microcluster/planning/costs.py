"""Hours and dollars of steps, and the hour that will be billed next."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

HOUR_S = 3600


@dataclass(frozen=True)
class Bill:
    """What machines cost that work for so many seconds; ``per_hour`` are dollars for all of them together."""

    seconds: float
    per_hour: Decimal

    @property
    def hours(self) -> float:
        """The time in hours."""
        return self.seconds / HOUR_S

    @property
    def dollars(self) -> float:
        """The time at its price, without rounding to whole hours."""
        return self.hours * float(self.per_hour)


def next_started_hour(opened: datetime, now: datetime) -> datetime:
    """Return when the next hour of something begins that has been billed since ``opened``.

    That an hour counts when it has started is an assumption: the vendor only says that active hours are counted.
    """
    hours = max(math.floor((now - opened) / timedelta(hours=1)), 0) + 1
    return opened + timedelta(hours=hours)
