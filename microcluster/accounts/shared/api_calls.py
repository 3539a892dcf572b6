"""Calls to an account: paced, ended in time and sent once; reads are repeated, and lists read whole and shared."""

import math
import socket
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from email.utils import parsedate_to_datetime
from typing import Any, Self

import tenacity
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

from microcluster.accounts.shared.errors import (
    NO_ANSWER,
    NOT_SENT,
    UNREADABLE,
    AccountError,
    CallError,
    WaitError,
    unreadable,
)
from microcluster.accounts.shared.journal import STEADY
from microcluster.accounts.shared.redaction import redacted, without_secrets

LONGEST_TURN_S = 20.0
"""A call that has had no turn for so long is not sent; the rest of the time is for the call."""
WORKERS = 16
READ_ATTEMPTS = 8
LOCAL_ATTEMPTS = 3
NOBODY_LISTENS = "Connection refused"
"""Error text of a closed port. It is not retried on this computer: nobody will listen, and a person waits."""
READINGS = 8
FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 15.0
RATE_LIMIT_PAUSE_S = 1.0
"""The limit counts by the second."""
LONGEST_RETRY_AFTER_S = 15.0
BURST_S = 0.2
LONGEST_LAST_PAUSE_S = 5.0
"""Longest wait for a turn once the engine has asked to stop."""

Row = dict[str, Any]
_of_thread = threading.local()


def at(row: Mapping[str, Any] | None, path: str) -> Any:
    """Read a nested value by its path, for example ``billingItem.order.id``; None where a part of the path is missing."""
    value: Any = row
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def text_at(row: Mapping[str, Any] | None, path: str) -> str:
    """Read a text in the same way; empty where there is none."""
    found = at(row, path)
    return "" if found is None else str(found)


def at_once(act: Callable[[Any], Any], things: Iterable[Any]) -> list[Any]:
    """Call ``act`` for many things in parallel; return the results in their order."""
    with ThreadPoolExecutor(WORKERS) as pool:
        return list(pool.map(act, things))


class Moved(Exception):
    """The list was another one by the time of the next page."""


class Wire(ABC):
    """One account's API, callable from every thread: each has a client of its own, and all share one rate limit."""

    fault: type[CallError]
    """The vendor's own error, which knows what its codes mean."""
    per_second: float
    """Rate limit: calls in a second of the account's time."""

    def __init__(self, credentials: Any, stop: threading.Event | None = None, time_scale: float = 1.0) -> None:
        self.credentials = credentials
        self._stop, self._time_scale = stop or threading.Event(), time_scale
        self._local = threading.local()
        self._limiter = RateLimiter(self.per_second / time_scale)
        self.clock_ahead_s = 0.0
        """Seconds by which this computer's clock is ahead of the account's, by its newest answer."""

    def heed(self, headers: Mapping[str, str]) -> None:
        """Take from an answer when to call again, and what time it is there."""
        self._limiter.back_off(retry_after_s(headers))
        with suppress(KeyError, ValueError, TypeError):
            self.clock_ahead_s = time.time() - parsedate_to_datetime(headers["Date"]).timestamp()

    @abstractmethod
    def connect(self) -> Any:
        """Make the client of one thread."""

    @contextmanager
    def sending(self, call: str, limit_s: float) -> Iterator[Any]:
        """Give the client once it is the call's turn, and end in time what it sends.

        Args:
            limit_s: for the turn, connecting, sending and the whole answer. Only the look-up of a name may take longer.
        """
        began = steady_s()
        if not self._limiter.take(self._stop, LONGEST_TURN_S):
            raise self.fault(call, NOT_SENT, f"no turn within {LONGEST_TURN_S:g} s, as the account asks for pauses")
        try:
            with CallTimer(limit_s - (steady_s() - began)):
                yield self._client()
        except TimeoutError as error:
            raise self.error(call, NO_ANSWER, str(error) or type(error).__name__) from None

    def opened(self, ask: Callable[[int], Any], asked: str, source: str, start: str) -> Any:
        """Ask who we are, the first call of all, in so many attempts; nobody waits long for an account on this computer.

        Args:
            source: where the key may stand.
            start: the command that starts the account, if it is one on this computer.

        Raises:
            AccountError: the account cannot be read; the text says why, and what a person does about it.
        """
        key, failure = self.credentials, None
        for attempts in (LOCAL_ATTEMPTS, READ_ATTEMPTS) if key.is_local else (READ_ATTEMPTS,):
            try:
                return ask(attempts)
            except self.fault as error:
                failure = error
            if not failure.is_transient or NOBODY_LISTENS in failure.text:
                break
        why = unreadable(asked, failure, source, start if key.is_local else None)
        raise AccountError(without_secrets(why, key.api_key)) from failure

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
        """Read a list anew as long as it raises ``Moved``: it must never read as "nothing left".

        Raises:
            CallError: its pages do not fit together.
        """
        why = ""
        for _ in range(READINGS):
            try:
                return read()
            except Moved as moved:
                why = str(moved)
            self._stop.wait(FIRST_PAUSE_S * self._time_scale)
        raise self.fault(call, "truncated list", f"{why}, {READINGS} times")

    def error(self, call: str, code: str, text: str, status: int = 0) -> CallError:
        """Make the error of a failed call, without the key; after too many calls all callers pause."""
        said = [redacted(each, self.credentials.api_key) for each in (call, code, text)]
        error = self.fault(said[0], said[1], said[2], status)
        if error.is_rate_limit:
            self._limiter.back_off(RATE_LIMIT_PAUSE_S)
        return error

    def _client(self) -> Any:
        if not hasattr(self._local, "client"):
            self._local.client = self.connect()
        return self._local.client


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
        """List rows with exactly this stack and mark, cancelled ones included."""
        not_before = time.monotonic() - max_age_s
        with self._lock:
            began, rows = self._read.get(owner, (float("-inf"), []))
            if began < not_before:
                began, rows = time.monotonic(), self._fetch(owner)
                self._read[owner] = (began, rows)
        return rows


class CallTimer:
    """Ends the request of this thread: after it nothing is sent any more, and no answer is waited for.

    The limits of ``requests`` count anew with every byte that comes.

    Raises:
        TimeoutError: at its end, when the time was over before; what came until then may be a part of an answer.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._is_over = False
        self._ends = steady_s() + seconds  # A computer may have slept before something is sent.
        self._socket: socket.socket | None = None
        self._lock = threading.Lock()
        self._timer = threading.Timer(max(seconds, 0), self._end)
        self._timer.daemon = True

    def __enter__(self) -> Self:
        _of_thread.deadline = self
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        _of_thread.deadline = None
        if self._is_over:
            raise TimeoutError(f"no whole answer within {self._seconds:.0f} s")

    def cover(self, connected: socket.socket) -> None:
        """Watch over the socket to which something is about to be sent.

        Raises:
            TimeoutError: it is too late to send anything.
        """
        with self._lock:
            if self._is_over or steady_s() >= self._ends:
                raise TimeoutError("no time is left to send it")
            self._socket = connected

    def _end(self) -> None:
        with self._lock:
            self._is_over = True
            if self._socket is not None:
                with suppress(OSError):
                    # Not the method of a TLS socket, which would go on in plain text.
                    socket.socket.shutdown(self._socket, socket.SHUT_RDWR)


class _Bounded:
    """A connection that sends nothing after the deadline of its thread."""

    def send(self, content: Any) -> None:
        if self.sock is None:
            self.connect()
        deadline: CallTimer | None = getattr(_of_thread, "deadline", None)
        if deadline is not None:
            deadline.cover(self.sock)
        super().send(content)


class _HttpConnection(_Bounded, HTTPConnection):
    pass


class _HttpsConnection(_Bounded, HTTPSConnection):
    pass


class _HttpPool(HTTPConnectionPool):
    ConnectionCls = _HttpConnection


class _HttpsPool(HTTPSConnectionPool):
    ConnectionCls = _HttpsConnection


class OnceAdapter(HTTPAdapter):
    """Sends a request once; the client's own adapter repeats one, orders too, when TLS breaks after it was sent."""

    def __init__(self) -> None:
        super().__init__(max_retries=0)

    def init_poolmanager(self, *args: Any, **options: Any) -> None:
        """Make the pools of direct connections."""
        super().init_poolmanager(*args, **options)
        self.poolmanager.pool_classes_by_scheme = {"http": _HttpPool, "https": _HttpsPool}

    def proxy_manager_for(self, *args: Any, **options: Any) -> Any:
        """Make the pools of connections over a proxy."""
        manager = super().proxy_manager_for(*args, **options)
        manager.pool_classes_by_scheme = self.poolmanager.pool_classes_by_scheme
        return manager


def steady_s() -> float:
    """Return seconds that count on while the computer sleeps."""
    return time.clock_gettime(STEADY)


def retry_after_s(headers: Mapping[str, str]) -> float:
    """Read for how long an answer asks not to be called again; a date instead of seconds is passed over."""
    asked = str(headers.get("Retry-After") or "")
    return min(float(asked), LONGEST_RETRY_AFTER_S) if asked.isdigit() else 0.0
