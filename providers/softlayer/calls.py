"""Calls to the API: each has a time limit; reads are repeated and read whole, the rest is sent once."""

import threading
import xmlrpc.client
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any
from xml.parsers.expat import ExpatError

import SoftLayer
import tenacity

from providers.rental import waiting
from providers.rental.errors import NO_ANSWER, NOT_SENT
from providers.rental.http_once import CallTimer
from providers.rental.redaction import redacted
from providers.rental.waiting import RateLimiter
from providers.softlayer.credentials import Credentials
from providers.softlayer.errors import ApiError, fault_code
from providers.softlayer.transport import LONGEST_ORDER_S, new_client

CALLS_PER_SECOND = 40
"""The service refuses more than 50 a second for a whole account, and we are not alone in it."""
LISTS_LAG_S = 120.0
"""Lists may lag this far behind an accepted order."""
SETTLED_S = LISTS_LAG_S + LONGEST_ORDER_S
"""So long after its caller has left whatever an order made is in the lists."""
LONGEST_TURN_S = 20.0
"""A call that has had no turn for so long is not sent; the rest of the time is for the call."""
READ_ATTEMPTS = 8
FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 15.0
RATE_LIMIT_PAUSE_S = 1.0
"""The limit counts by the second."""


PAGE_SIZE = 100
READINGS = 4
ASCENDING = {"operation": "orderBy", "options": [{"name": "sort", "value": ["ASC"]}]}
KEYS = {"Network_Pod": "name"}
"""What tells the rows of a service apart, where it is not the id (SoftLayer_Network_Pod has none)."""

Row = dict[str, Any]
ReadPage = Callable[..., list[Row]]


class _Moved(Exception):
    """The list was another one by the time of the next page."""


class Api:
    """One account's API, callable from every thread: each has a client of its own, and all share one rate limit."""

    def __init__(self, credentials: Credentials, stop: threading.Event, time_scale: float = 1.0) -> None:
        self.credentials = credentials
        self._stop = stop
        self._time_scale = time_scale
        self._local = threading.local()
        self._limiter = RateLimiter(CALLS_PER_SECOND / time_scale)

    def read(
        self,
        service: str,
        method: str,
        *args: Any,
        attempts: int = READ_ATTEMPTS,
        expect: type = object,
        **options: Any,
    ) -> Any:
        """Call something that changes nothing; transient faults are tried again.

        Args:
            attempts: at most this often.
            expect: what the answer has to be; anything else is transient too.
            options: ``id``, ``mask``, ``filter``, ``limit`` and ``offset`` of the official client.
        """
        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception(lambda error: isinstance(error, ApiError) and error.is_transient),
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
        return self.read(service, method, *args, **options)

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

    def once(self, service: str, method: str, *args: Any, limit_s: float | None = None, **options: Any) -> Any:
        """Send a call exactly once: orders and cancellations, whose lost answers are resolved by looking.

        Args:
            limit_s: the longest time for its turn in the queue, connecting, sending and the whole answer; by default the
                account's for every call. Only the look-up of a name may take longer.
        """
        call = f"calling {service}::{method}" + (f" of {options['id']}" if options.get("id") else "")
        began = waiting.now().seconds
        if not self._limiter.take(self._stop, LONGEST_TURN_S):
            raise ApiError(call, NOT_SENT, f"no turn within {LONGEST_TURN_S:g} s, as the account asks for pauses")
        try:
            with CallTimer((limit_s or self.credentials.timeout_s) - (waiting.now().seconds - began)):
                answer = self._client().call(service, method, *args, **options)
        except TimeoutError as error:
            raise self._error(call, NO_ANSWER, str(error)) from None
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
            self._limiter.back_off(RATE_LIMIT_PAUSE_S)
        return error

    def _client(self) -> SoftLayer.BaseClient:
        client = getattr(self._local, "client", None)
        if client is None:
            client = self._local.client = new_client(self.credentials, self._limiter.back_off)
        return client


def made_id(answer: Any, call: str) -> str:
    """Read the id of what a call made.

    Raises:
        ApiError: the answer names none; the call may have been carried out all the same.
    """
    if isinstance(answer, Mapping) and str(answer.get("id") or "").isdigit():
        return str(answer["id"])
    raise ApiError(f"calling {call}", "unreadable answer", "the answer names no id")


def read_whole(read: ReadPage, service: str, method: str, pause: Callable[[], None], **options: Any) -> list[Row]:
    """Read a list until its pages fit together.

    Args:
        read: ``Api.read`` or the like; reads one page.
        pause: called before the list is read anew.

    Raises:
        ApiError: its pages do not fit together or are fewer than it says: it must never read as "nothing left".
    """
    key = KEYS.get(service, "id")
    options = {**options, "filter": in_order(service, method, key, options.get("filter"))}
    why = ""
    for reading in range(READINGS):
        if reading:
            pause()
        try:
            return _read_once(lambda offset: read(service, method, limit=PAGE_SIZE, offset=offset, **options), key)
        except _Moved as moved:
            why = str(moved)
    raise ApiError(f"listing {service}::{method}", "truncated list", f"{why}, {READINGS} times")


def in_order(service: str, method: str, key: str, tree: Mapping[str, Any] | None) -> dict[str, Any]:
    """Add an order to a filter: without one the service may list in another order each time.

    The relations of the account are filtered under their own names; `getAllObjects` has no root.
    """
    tree = dict(tree or {})
    if service != "Account":
        return {key: ASCENDING, **tree}
    root = method.removeprefix("get")
    root = root[0].lower() + root[1:]
    return {**tree, root: {key: ASCENDING, **tree.get(root, {})}}


def _read_once(read: Callable[[int], list[Row]], key: str) -> list[Row]:
    """Read from the first page to the last; each page begins with the last row of the one before.

    If that row has kept its place, the rows before it were all read: new ones have higher ids and come at the end.
    """
    rows: list[Row] = []
    while True:
        page = read(max(len(rows) - 1, 0))
        total = getattr(page, "total_count", 0)
        if rows and (not page or key not in page[0] or page[0][key] != rows[-1].get(key)):
            raise _Moved("its pages do not continue each other")
        rows += page[1:] if rows else page
        names = [row[key] for row in rows if key in row]
        if len(set(names)) < len(names):
            raise _Moved("it names something twice")
        # A longer page than was asked for is everything: the method knows no pages.
        if len(page) != PAGE_SIZE or len(rows) == total:
            break
    if len(rows) < total:
        raise _Moved(f"{len(rows)} of {total} came")
    return rows
