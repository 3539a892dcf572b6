"""The limit on calls per real second, for the whole account."""

import time
from collections import deque
from collections.abc import Callable

WINDOW_S = 1.0


class RateLimit:
    """A sliding second; a refused call does not count."""

    def __init__(self, calls_per_second: int, seconds: Callable[[], float] = time.monotonic) -> None:
        self._limit = calls_per_second
        self._seconds = seconds
        self._passed: deque[float] = deque()

    def exceeded(self) -> bool:
        """Count one more call; return whether it is over the limit."""
        if not self._limit:
            return False
        now = self._seconds()
        while self._passed and self._passed[0] <= now - WINDOW_S:
            self._passed.popleft()
        if len(self._passed) >= self._limit:
            return True
        self._passed.append(now)
        return False
