"""The account's own clock: it has a rate of its own, and goes on while the emulator is stopped."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime


@dataclass
class Clock:
    """Virtual seconds since the epoch: ``virtual0`` at real time ``real0``, then ``rate`` per second.

    At rate 0 only ``step`` moves it, so that a run does not depend on the speed of this computer.
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
        """Real seconds until the account's clock shows ``moment``; infinite when only steps move it."""
        if not self.rate:
            return math.inf
        return max(0.0, (moment - self.now()) / self.rate)

    def with_rate(self, rate: float) -> "Clock":
        """The same time from now on at another rate."""
        return Clock(rate, self.real_time(), self.now(), self.real_time)


def resumed_clock(facts: dict[str, str], clock_rate: float, step_s: float, start: str) -> Clock:
    """The clock of the last run, kept in ``facts``; it went on while the emulator was stopped."""
    rate = 0.0 if step_s else clock_rate
    if "clock_rate" in facts:
        last = Clock(float(facts["clock_rate"]), float(facts["clock_real0"]), float(facts["clock_virtual0"]))
        clock = last if last.rate == rate else last.with_rate(rate)
    elif start:
        clock = Clock(rate, virtual0=datetime.fromisoformat(start).timestamp())
    else:
        clock = Clock(rate)
    facts |= {
        "clock_rate": repr(clock.rate),
        "clock_real0": repr(clock.real0),
        "clock_virtual0": repr(clock.virtual0),
    }
    return clock
