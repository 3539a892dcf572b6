"""Calls to an account: paced, ended in time and sent once; reads are repeated, and lists read whole and shared."""

import math
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any

import tenacity

from providers.rental import waiting
from providers.rental.errors import NO_ANSWER, NOT_SENT, UNREADABLE, CallError, WaitError
from providers.rental.http_once import CallTimer
from providers.rental.redaction import redacted

LONGEST_TURN_S = 20.0
"""A call that has had no turn for so long is not sent; the rest of the time is for the call."""
READ_ATTEMPTS = 8
READINGS = 8
FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 15.0
RATE_LIMIT_PAUSE_S = 1.0
"""The limit counts by the second."""
BURST_S = 0.2
LONGEST_LAST_PAUSE_S = 5.0
"""When the engine asks to stop, a call that would wait for longer is not sent any more."""

Row = dict[str, Any]


class Moved(Exception):
    """The list was another one by the time of the next page."""


class Wire(ABC):
    """One account's API, callable from every thread: each has a client of its own, and all share one rate limit."""

    fault: type[CallError]
    """The vendor's own error, which knows what its codes mean."""

    def __init__(self, credentials: Any, stop: threading.Event, time_scale: float, per_second: float) -> None:
        self.credentials = credentials
        self._stop, self._time_scale = stop, time_scale
        self._local = threading.local()
        self._limiter = RateLimiter(per_second / time_scale)

    @abstractmethod
    def connect(self) -> Any:
        """Make the client of one thread."""

    @contextmanager
    def sending(self, call: str, limit_s: float) -> Iterator[Any]:
        """Give the client once it is the call's turn, and end in time what it sends.

        Args:
            limit_s: for the turn, connecting, sending and the whole answer. Only the look-up of a name may take longer.
        """
        began = waiting.now().seconds
        if not self._limiter.take(self._stop, LONGEST_TURN_S):
            raise self.fault(call, NOT_SENT, f"no turn within {LONGEST_TURN_S:g} s, as the account asks for pauses")
        try:
            with CallTimer(limit_s - (waiting.now().seconds - began)):
                yield self._client()
        except TimeoutError as error:
            raise self.error(call, NO_ANSWER, str(error) or type(error).__name__) from None

    def repeated(self, call: str, send: Callable[[], Any], expect: Any = object, attempts: int = READ_ATTEMPTS) -> Any:
        """Send what changes nothing, or may be sent twice; transient faults are tried again.

        Args:
            expect: what the answer has to be; anything else is transient too.
        """
        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception(lambda error: isinstance(error, self.fault) and error.is_transient),
            stop=tenacity.stop_after_attempt(attempts) | tenacity.stop_when_event_set(self._stop),
            wait=tenacity.wait_exponential_jitter(multiplier=FIRST_PAUSE_S, max=LONGEST_PAUSE_S, jitter=FIRST_PAUSE_S),
            sleep=lambda seconds: self._stop.wait(seconds * self._time_scale),
            reraise=True,
        )

        def shaped() -> Any:
            answer = send()
            if not isinstance(answer, expect):
                raise self.error(call, UNREADABLE, f"it is {type(answer).__name__}")
            return answer

        return retrying(shaped)

    def found(self, read: Callable[[], Any]) -> Any:
        """Read one object; None when it does not exist."""
        try:
            return read()
        except self.fault as error:
            if error.is_gone:
                return None
            raise

    def whole(self, call: str, read: Callable[[], list[Row]]) -> list[Row]:
        """Read a list until its pages fit together: it must never read as "nothing left"."""
        return read_whole(call, read, self.fault, lambda: self._stop.wait(FIRST_PAUSE_S * self._time_scale))

    def error(self, call: str, code: str, text: str, status: int = 0) -> CallError:
        """Say what went wrong without the key; after too many calls everybody pauses."""
        said = [redacted(each, self.credentials.api_key) for each in (call, code, text)]
        error = self.fault(said[0], said[1], said[2], status)
        if error.is_rate_limit:
            self._limiter.back_off(RATE_LIMIT_PAUSE_S)
        return error

    def _client(self) -> Any:
        if not hasattr(self._local, "client"):
            self._local.client = self.connect()
        return self._local.client


def read_whole(call: str, read: Callable[[], list[Row]], fault: type[CallError], pause: Callable[[], Any]) -> list[Row]:
    """Read a list anew as long as it raises ``Moved``.

    Raises:
        CallError: its pages do not fit together.
    """
    why = ""
    for reading in range(READINGS):
        if reading:
            pause()
        try:
            return read()
        except Moved as moved:
            why = str(moved)
    raise fault(call, "truncated list", f"{why}, {READINGS} times")


class RateLimiter:
    """Gives one caller after the other its turn, so that many machines at once stay below the account's limit."""

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
            now_s = time.monotonic()
            pause = self._next - now_s
            if is_stopping and pause > LONGEST_LAST_PAUSE_S:
                raise WaitError("waiting for a turn to call the API: the engine asked to stop. Run the command again.")
            if pause > 0 and not is_stopping:
                return pause
            self._next = max(self._next, now_s - BURST_S) + self._gap_s
            return 0.0


class SharedList:
    """A list by owner; simultaneous askers share one request, and nobody gets an answer older than asked for."""

    def __init__(self, fetch: Callable[[Any], list[Row]]) -> None:
        self._fetch = fetch
        self._lock = threading.Lock()
        self._read: dict[Hashable, tuple[float, list[Row]]] = {}

    def under(self, owner: Hashable, max_age_s: float = 0.0) -> list[Row]:
        """List what carries exactly this stack and mark, cancelled things included."""
        not_before = time.monotonic() - max_age_s
        with self._lock:
            began, rows = self._read.get(owner, (float("-inf"), []))
            if began < not_before:
                began, rows = time.monotonic(), self._fetch(owner)
                self._read[owner] = (began, rows)
        return rows
