"""Time: the clock that nobody sets, deadlines, and the one wait."""

import threading
import time
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from core.plain_text import duration
from providers.rental.errors import ProviderError, WaitError

Found = TypeVar("Found")
Tell = Callable[[str], None]

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""Counts on while the computer sleeps, and is never set; comparable within one boot, also between processes."""
SHORTEST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 10.0
PAUSE_SHARE = 0.05
"""Looks grow apart with the time already waited, so that short waits end soon and long ones cost few calls."""
TELL_EVERY_S = 5.0
Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Instant:
    """A moment of one boot of this computer."""

    boot: str
    seconds: float


def now() -> Instant:
    """Return the moment that it is; orders are decided by it, never by the wall clock."""
    return Instant(_boot(), time.clock_gettime(STEADY))


def since(moment: Instant | None) -> float | None:
    """Return the seconds since a moment; None if it is of another boot, of which nobody knows when it was."""
    here = now()
    if moment is None or moment.boot != here.boot or moment.seconds > here.seconds:
        return None
    return here.seconds - moment.seconds


def wall() -> datetime:
    """Return the date and time to show; anybody may set it, so nothing is decided by it."""
    return datetime.now(UTC)


def read_instant(event: Mapping[str, Any]) -> Instant | None:
    """Read a moment that was written down; None if there is none."""
    boot, seconds = event.get("boot"), event.get("seconds")
    return Instant(boot, float(seconds)) if isinstance(boot, str) and isinstance(seconds, int | float) else None


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

    def within(self, limit_s: float) -> "Deadline":
        """Be patient for ``limit_s`` from now, and never beyond this deadline."""
        mine = min(limit_s, max(self.left_s, 0) / self.time_scale)
        return Deadline(mine, self.stop, self.time_scale)


def wait_until(
    what: str, look: Callable[[], Found | Pending], deadline: Deadline, tell: Tell = lambda _: None
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
        usually = "" if found.usual_s is None else f" (this step usually takes {duration(found.usual_s)})"
        message = f"{found.detail}, {duration(waited)} so far{usually}"
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


@cache
def _boot() -> str:
    try:
        return BOOT_ID.read_text().strip()
    except OSError:
        return uuid.uuid4().hex  # Without it no two processes can compare their moments.


def answered(limit_s: float, ask: Callable[[], Answer]) -> Answer:
    """Return an answer that comes in time; a call that is late goes on behind and hinders nobody.

    Raises:
        ProviderError: there is none yet, or what the call raised.
    """
    done: Future[Answer] = Future()

    def call() -> None:
        try:
            done.set_result(ask())
        except Exception as error:  # noqa: BLE001 - it is raised where the answer is waited for
            done.set_exception(error)

    threading.Thread(target=call, daemon=True).start()
    try:
        return done.result(limit_s)
    except TimeoutError as late:
        raise ProviderError(f"it did not answer within {limit_s:g} s.") from late
