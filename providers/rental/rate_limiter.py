"""Spreads calls, so that many machines at once stay below the account's limit."""

from __future__ import annotations

import math
import threading
import time

from providers.rental.errors import WaitError

BURST_S = 0.2
LONGEST_LAST_PAUSE_S = 5.0
"""When the engine asks to stop, a call that would wait for longer is not sent any more."""


class RateLimiter:
    """Gives one caller after the other its turn."""

    def __init__(self, per_second: float) -> None:
        self._gap_s = 1 / per_second
        self._next = time.monotonic()
        self._lock = threading.Lock()
        self._first_in_line = threading.Lock()

    def back_off(self, seconds: float) -> None:
        """Let nobody call for a while: the account's limit is reached."""
        with self._lock:
            self._next = max(self._next, time.monotonic() + seconds)

    def take(self, stop: threading.Event, limit_s: float = math.inf) -> bool:
        """Wait for the caller's turn and tell whether it came within the limit.

        Raises:
            WaitError: the engine asked to stop, and the turn is far off.
        """
        ends = time.monotonic() + limit_s
        if not self._first_in_line.acquire(timeout=-1 if math.isinf(limit_s) else limit_s):
            return False
        try:
            while (pause := self._take_or_pause(is_stopping=stop.is_set())) > 0:
                left = ends - time.monotonic()
                if left <= 0:
                    return False
                stop.wait(min(pause, left))
            return True
        finally:
            self._first_in_line.release()

    def _take_or_pause(self, *, is_stopping: bool) -> float:
        """Take the turn and return 0, or return for how long it is not due."""
        with self._lock:
            now = time.monotonic()
            pause = self._next - now
            if is_stopping and pause > LONGEST_LAST_PAUSE_S:
                raise WaitError("waiting for a turn to call the API: the engine asked to stop. Run the command again.")
            if pause > 0 and not is_stopping:
                return pause
            self._next = max(self._next, now - BURST_S) + self._gap_s
            return 0.0
