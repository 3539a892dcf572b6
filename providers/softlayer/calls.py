"""Calls to the API: a time limit on each, reads repeated in bad weather, everything else sent exactly once."""

from __future__ import annotations

import heapq
import itertools
import math
import threading
import time
import xmlrpc.client
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from xml.parsers.expat import ExpatError

import SoftLayer
import tenacity

from providers.grpc.redaction import redacted
from providers.rental import clock
from providers.softlayer.credentials import Credentials
from providers.softlayer.errors import NOT_SENT, NOT_TRUSTED, ApiError, WaitError
from providers.softlayer.paging import read_whole
from providers.softlayer.transport import Deadline, new_client

CALLS_PER_SECOND = 40
"""The service refuses more than 50 a second for a whole account, and we are not alone in it."""
BURST_S = 0.2
LONGEST_DEAF_S = 1.0
"""A caller in the queue looks this often whether the engine asks to stop."""
LONGEST_LAST_PAUSE_S = 5.0
"""Who would have to wait for longer when the engine asks to stop does not call any more."""
LONGEST_CALL_S = 60.0
"""So long after ``Api.once`` was called, at the latest, nothing of the call is on its way to the account any more.

It covers the turn in the queue, connecting, sending and the whole answer; only the look-up of a name may end later.
"""
LONGEST_TURN_S = 20.0
"""Who has had no turn for so long has not called; the rest of the time is for the call."""
READ_ATTEMPTS = 8
FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 15.0
RATE_LIMIT_PAUSE_S = 1.0
"""The limit counts by the second."""


class Api:
    """One account's API, callable from every thread: each has a client of its own, and all keep one pace."""

    def __init__(self, credentials: Credentials, stop: threading.Event, time_scale: float = 1.0) -> None:
        self.credentials = credentials
        self._stop = stop
        self._time_scale = time_scale
        self._local = threading.local()
        self._pace = _Pace(CALLS_PER_SECOND / time_scale)

    def read(
        self,
        service: str,
        method: str,
        *args: Any,
        attempts: int = READ_ATTEMPTS,
        expect: type = object,
        **options: Any,
    ) -> Any:
        """Call something that changes nothing, as often as the weather asks for.

        Args:
            attempts: at most this often.
            expect: what the answer has to be; anything else is weather too.
            options: ``id``, ``mask``, ``filter``, ``limit`` and ``offset`` of the official client.
        """
        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception(lambda error: isinstance(error, ApiError) and error.is_weather),
            stop=tenacity.stop_after_attempt(attempts) | tenacity.stop_when_event_set(self._stop),
            wait=tenacity.wait_exponential_jitter(multiplier=FIRST_PAUSE_S, max=LONGEST_PAUSE_S, jitter=FIRST_PAUSE_S),
            sleep=lambda seconds: self._stop.wait(seconds * self._time_scale),
            reraise=True,
        )

        def shaped() -> Any:
            answer = self.once(service, method, *args, **options)
            if not isinstance(answer, expect):
                raise self._error(f"calling {service}::{method}", "unreadable answer", f"it is {type(answer).__name__}")
            return answer

        return retrying(shaped)

    def ensure(self, service: str, method: str, *args: Any, **options: Any) -> Any:
        """Bring about a state that the call itself describes (tags, notes, rules): sending it twice does no harm."""
        return self.read(service, method, *args, can_wait=True, **options)

    def read_all(self, service: str, method: str, **options: Any) -> list[dict[str, Any]]:
        """Read a whole list; one that ends before its own total, or whose pages do not fit together, is an ApiError."""
        return read_whole(partial(self.read, expect=list), service, method, self._pause, **options)

    def find(self, service: str, object_id: str, mask: str) -> dict[str, Any] | None:
        """Read one object; None when it does not exist."""
        try:
            return self.read(service, "getObject", id=int(object_id), mask=mask, expect=dict)
        except ApiError as error:
            if error.is_gone:
                return None
            raise

    def once(self, service: str, method: str, *args: Any, can_wait: bool = False, **options: Any) -> Any:
        """Send a call exactly once: orders and cancellations, whose lost answers are resolved by looking.

        Args:
            can_wait: whether others go first: what is ordered later is ready later, what is labelled later is not.
        """
        call = f"calling {service}::{method}" + (f" of {options['id']}" if options.get("id") else "")
        began = clock.now().seconds
        if not self._pace.take(self._stop, can_wait=can_wait, limit_s=LONGEST_TURN_S):
            raise ApiError(call, NOT_SENT, f"no turn within {LONGEST_TURN_S:g} s, as the account asks for pauses")
        try:
            with Deadline(LONGEST_CALL_S - (clock.now().seconds - began)):
                answer = self._client().call(service, method, *args, **options)
        except TimeoutError as error:
            raise self._error(call, "no answer", str(error)) from None
        except SoftLayer.SoftLayerAPIError as error:
            text = str(error.faultString)
            raise self._error(call, fault_code(error, text), text) from None
        except (ExpatError, xmlrpc.client.Error, ValueError, KeyError, TypeError, AttributeError) as error:
            raise self._error(call, "unreadable answer", f"{type(error).__name__}: {error}") from None
        if isinstance(answer, dict) and set(answer) >= {"error", "code"}:
            # REST hands an error with status 200 back as a result.
            raise self._error(call, str(answer["code"]), str(answer["error"]))
        return answer

    def _pause(self) -> None:
        self._stop.wait(FIRST_PAUSE_S * self._time_scale)

    def _error(self, call: str, code: str, text: str) -> ApiError:
        error = ApiError(call, code, redacted(text, self.credentials.api_key))
        if error.is_rate_limit:
            self._pace.hold(RATE_LIMIT_PAUSE_S)
        return error

    def _client(self) -> SoftLayer.BaseClient:
        client = getattr(self._local, "client", None)
        if client is None:
            client = self._local.client = new_client(self.credentials, self._pace.hold)
        return client


def fault_code(error: SoftLayer.SoftLayerAPIError, text: str) -> str:
    """Name what happened: a fault by its code, everything that a gateway or a broken wire may have done by ours.

    Over REST an ordinary refusal is a 500 with SoftLayer's sentence in it; a gateway's is a page or nothing.
    """
    code = str(error.faultCode)
    if code == "0":
        return NOT_TRUSTED if "CERTIFICATE_VERIFY_FAILED" in text else "no answer"
    if isinstance(error, SoftLayer.TransportError) and code.isdigit():
        return f"HTTP {code}"
    is_page = text.lstrip().startswith("<") or text in ("", "Empty response.")
    if code == "200" or (code.isdigit() and is_page):
        return "unreadable answer"
    return f"HTTP {code}" if code.isdigit() and int(code) > 500 else code


def made_id(answer: Any, call: str) -> str:
    """Read the id of what a call made.

    Raises:
        ApiError: the answer names none; the call may have been carried out all the same.
    """
    if isinstance(answer, Mapping) and str(answer.get("id") or "").isdigit():
        return str(answer["id"])
    raise ApiError(f"calling {call}", "unreadable answer", "the answer names no id")


@dataclass(order=True)
class _Turn:
    """One caller's place in the queue: those that can wait after the others, each in the order in which they came."""

    can_wait: bool
    number: int
    called: threading.Event = field(default_factory=threading.Event, compare=False)


class _Pace:
    """Spreads calls, so that many machines at once stay below the account's limit."""

    def __init__(self, per_second: float) -> None:
        self._gap_s = 1 / per_second
        self._next = time.monotonic()
        self._queue: list[_Turn] = []
        self._numbers = itertools.count()
        self._lock = threading.Lock()

    def hold(self, seconds: float) -> None:
        """Let nobody call for a while: the account's limit is reached."""
        with self._lock:
            self._next = max(self._next, time.monotonic() + seconds)

    def take(self, stop: threading.Event, *, can_wait: bool = False, limit_s: float = math.inf) -> bool:
        """Wait for the caller's turn and tell whether it came; a request to stop lets everyone through who need not wait for long."""
        turn, ends = _Turn(can_wait, next(self._numbers)), time.monotonic() + limit_s
        with self._lock:
            heapq.heappush(self._queue, turn)
        while (pause := self._pass(turn, stop)) > 0:
            left = ends - time.monotonic()
            if left <= 0:
                with self._lock:
                    self._leave(turn)
                return False
            turn.called.wait(min(pause, LONGEST_DEAF_S, left))
        return True

    def _pass(self, turn: _Turn, stop: threading.Event) -> float:
        """Leave the queue if it is this turn, and return 0; else return for how long to wait, unless called before."""
        with self._lock:
            now = time.monotonic()
            pause = self._next - now
            is_first = self._queue[0] is turn
            if stop.is_set():
                pause = 0.0 if pause <= LONGEST_LAST_PAUSE_S else math.inf
            elif not is_first:
                turn.called.clear()
                return math.inf
            elif pause > 0:
                return pause
            self._leave(turn)
            self._next = max(self._next, now - BURST_S) + self._gap_s
        if math.isinf(pause):
            raise WaitError("waiting for a turn to call the API: the engine asked to stop. Run the command again.")
        return 0.0

    def _leave(self, turn: _Turn) -> None:
        """Take a turn out of the queue, under the lock, and call the next one."""
        self._queue.remove(turn)
        heapq.heapify(self._queue)
        if self._queue:
            self._queue[0].called.set()
