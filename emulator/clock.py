"""The account's own clock: it runs at a rate of its own and goes on while the emulator is stopped."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone

# SoftLayer reports US Central time; the emulator leaves daylight saving out.
CENTRAL = timezone(timedelta(hours=-6))


@dataclass
class Clock:
    """Virtual seconds since the epoch: ``virtual0`` at the real moment ``real0``, then ``rate`` per real second.

    At rate 0 it stands still but for its steps, so that what happens does not depend on how fast this machine is.
    """

    rate: float
    real0: float = field(default_factory=time.time)
    virtual0: float = field(default_factory=time.time)
    real_time: Callable[[], float] = time.time

    def now(self) -> float:
        """The account's time in seconds since the epoch."""
        return self.virtual0 + (self.real_time() - self.real0) * self.rate

    def step(self, seconds: float) -> None:
        """Go on at once by some seconds of the account's time."""
        self.virtual0 += seconds

    def real_seconds_until(self, moment: float) -> float:
        """How long a person waits until the account's clock shows ``moment``; for ever when only steps move it."""
        if not self.rate:
            return math.inf
        return max(0.0, (moment - self.now()) / self.rate)

    def with_rate(self, rate: float) -> Clock:
        """The same time from now on at another rate."""
        return Clock(rate, self.real_time(), self.now(), self.real_time)


def iso(moment: float | None) -> str | None:
    """A date as SoftLayer writes it: a string with its offset."""
    return None if moment is None else datetime.fromtimestamp(moment, CENTRAL).isoformat(timespec="seconds")
