"""The one wait: it has a limit, fails early, tells how it goes, and ends when the engine asks to stop."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from microcluster.plain_text import duration
from providers.rental.errors import WaitError

Found = TypeVar("Found")

SHORTEST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 10.0
PAUSE_SHARE = 0.05
"""Looks grow apart with the time already waited, so that short waits end soon and long ones cost few calls."""
TELL_EVERY_S = 5.0


@dataclass(frozen=True)
class Pending:
    """What is going on instead, and how long that usually takes."""

    detail: str
    usual_s: float | None = None


@dataclass(frozen=True)
class Deadline:
    """How long one operation may take in all, what ends it early, and the unit of its time."""

    limit_s: float
    stop: threading.Event
    time_scale: float = 1.0
    started: float = field(default_factory=time.monotonic)

    @property
    def left_s(self) -> float:
        """Seconds on the clock until the limit."""
        return self.started + self.limit_s * self.time_scale - time.monotonic()

    def pause(self, seconds: float) -> None:
        """Let some time go by between two attempts; a request to stop ends it."""
        self.stop.wait(min(seconds * self.time_scale, max(self.left_s, 0)))

    def within(self, limit_s: float) -> Deadline:
        """Be patient for ``limit_s`` from now, and never beyond this deadline."""
        mine = min(limit_s, max(self.left_s, 0) / self.time_scale)
        return Deadline(mine, self.stop, self.time_scale)


def wait_until(
    what: str, look: Callable[[], Found | Pending], deadline: Deadline, tell: Callable[[str], None] = lambda _: None
) -> Found:
    """Look until it is there and return it; a look that raises ends the wait.

    Args:
        what: the subject of the sentence, for example ``guest 101 (gpu-0) provisioned``.
        look: returns what is waited for, or ``Pending``.
    """
    began = time.monotonic()
    told = None
    while True:
        found = look()
        if not isinstance(found, Pending):
            return found
        waited = time.monotonic() - began
        message = f"{found.detail}, {duration(waited)} so far{_usually(found)}"
        if told is None or told[0] != found.detail or waited - told[1] >= TELL_EVERY_S:
            tell(message)
            told = (found.detail, waited)
        if deadline.stop.is_set():
            raise WaitError(f"waiting for {what}: stopped on request ({message}). Run the command again to go on.")
        if deadline.left_s <= 0:
            raise WaitError(
                f"waiting for {what}: not within the time allowed ({message}). Run the command again to go on."
            )
        deadline.stop.wait(min(pause_s(waited, deadline.time_scale), max(deadline.left_s, 0.01)))


def pause_s(waited_s: float, time_scale: float) -> float:
    """Return how long to pause, on the clock, after having waited so long."""
    return min(max(waited_s / time_scale * PAUSE_SHARE, SHORTEST_PAUSE_S), LONGEST_PAUSE_S) * time_scale


def _usually(pending: Pending) -> str:
    return "" if pending.usual_s is None else f" (this step usually takes {duration(pending.usual_s)})"
