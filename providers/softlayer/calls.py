"""Calls to the API: a time limit on each, reads repeated in bad weather, everything else sent exactly once."""

from __future__ import annotations

import re
import threading
import time
import xmlrpc.client
from typing import Any
from xml.parsers.expat import ExpatError

import SoftLayer
import tenacity

from providers.softlayer.credentials import Credentials
from providers.softlayer.errors import ApiError, WaitError

CALLS_PER_SECOND = 40
"""The service refuses more than 50 a second for a whole account, and we are not alone in it."""
CONNECT_TIMEOUT_S = 10.0
READ_ATTEMPTS = 8
FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 15.0
PAGE_SIZE = 100
SHORTEST_SECRET = 12


class Api:
    """One account's API, callable from every thread: each has a client of its own, and all keep one pace."""

    def __init__(self, credentials: Credentials, stop: threading.Event, time_scale: float = 1.0) -> None:
        self.credentials = credentials
        self._stop = stop
        self._time_scale = time_scale
        self._local = threading.local()
        self._pace = _Pace(CALLS_PER_SECOND)

    def read(self, service: str, method: str, *args: Any, attempts: int = READ_ATTEMPTS, **options: Any) -> Any:
        """Call something that changes nothing, as often as the weather asks for.

        Args:
            attempts: at most this often.
            options: ``id``, ``mask``, ``filter``, ``limit`` and ``offset`` of the official client.
        """
        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception(lambda error: isinstance(error, ApiError) and error.is_weather),
            stop=tenacity.stop_after_attempt(attempts) | tenacity.stop_when_event_set(self._stop),
            wait=tenacity.wait_exponential_jitter(multiplier=FIRST_PAUSE_S, max=LONGEST_PAUSE_S, jitter=FIRST_PAUSE_S),
            sleep=lambda seconds: self._stop.wait(seconds * self._time_scale),
            reraise=True,
        )
        return retrying(self.once, service, method, *args, **options)

    def ensure(self, service: str, method: str, *args: Any, **options: Any) -> Any:
        """Bring about a state that the call itself describes (tags, notes, rules): sending it twice does no harm."""
        return self.read(service, method, *args, **options)

    def read_all(self, service: str, method: str, **options: Any) -> list[dict[str, Any]]:
        """Read a whole list, page by page; the total may be missing, but where it is there it must have come.

        Raises:
            ApiError: the list is none, or ends before its own total: it must never read as "nothing left".
        """
        rows: list[dict[str, Any]] = []
        while True:
            page = self.read(service, method, limit=PAGE_SIZE, offset=len(rows), **options)
            if not isinstance(page, list):
                raise ApiError(f"listing {service}::{method}", "unreadable answer", f"{type(page).__name__}, no list")
            rows += page
            if len(page) < PAGE_SIZE:
                break
        total = getattr(page, "total_count", 0)
        if len(rows) < total:
            raise ApiError(f"listing {service}::{method}", "truncated list", f"{len(rows)} of {total} came")
        return rows

    def find(self, service: str, object_id: str, mask: str) -> dict[str, Any] | None:
        """Read one object; None when it does not exist."""
        try:
            return self.read(service, "getObject", id=int(object_id), mask=mask)
        except ApiError as error:
            if error.is_gone:
                return None
            raise

    def once(self, service: str, method: str, *args: Any, **options: Any) -> Any:
        """Send a call exactly once: orders and cancellations, whose lost answers are resolved by looking."""
        call = f"calling {service}::{method}" + (f" of {options['id']}" if options.get("id") else "")
        self._pace.take(self._stop)
        try:
            answer = self._client().call(service, method, *args, **options)
        except SoftLayer.SoftLayerAPIError as error:
            code = str(error.faultCode)
            raise self._error(call, "no answer" if code == "0" else code, str(error.faultString)) from None
        except (ExpatError, xmlrpc.client.Error, ValueError, KeyError, TypeError, AttributeError) as error:
            raise self._error(call, "unreadable answer", f"{type(error).__name__}: {error}") from None
        if isinstance(answer, dict) and set(answer) >= {"error", "code"}:
            # REST hands an error with status 200 back as a result.
            raise self._error(call, str(answer["code"]), str(answer["error"]))
        return answer

    def _error(self, call: str, code: str, text: str) -> ApiError:
        return ApiError(call, code, redacted(text, self.credentials.api_key))

    def _client(self) -> SoftLayer.BaseClient:
        client = getattr(self._local, "client", None)
        if client is None:
            client = self._local.client = new_client(self.credentials)
        return client


def new_client(credentials: Credentials) -> SoftLayer.BaseClient:
    """Build an official client from explicit settings alone."""
    client = SoftLayer.create_client_from_env(
        username=credentials.username,
        api_key=credentials.api_key,
        endpoint_url=credentials.endpoint,
        timeout=credentials.timeout_s,
    )
    client.transport.timeout = (min(CONNECT_TIMEOUT_S, credentials.timeout_s), credentials.timeout_s)
    client.transport.client.trust_env = not credentials.is_local
    return client


def redacted(text: str, *secrets: str) -> str:
    """Take secrets and private keys out of a text, and cut it to a size that fits a message."""
    for secret in secrets:
        # A key as short as the local account's is a word of the language; replacing it would garble every message.
        text = text.replace(secret, "(secret)") if len(secret) >= SHORTEST_SECRET else text
    text = re.sub(r"-----BEGIN.*?(-----END[^-]*-----|$)", "(private key)", text, flags=re.DOTALL)
    return text if len(text) <= 400 else f"{text[:400]}..."


class _Pace:
    """Spreads calls, so that many machines at once stay below the account's limit."""

    def __init__(self, per_second: float) -> None:
        self._gap_s = 1 / per_second
        self._burst_s = 0.5
        self._next = time.monotonic()
        self._lock = threading.Lock()

    def take(self, stop: threading.Event) -> None:
        with self._lock:
            now = time.monotonic()
            self._next = max(self._next, now - self._burst_s) + self._gap_s
            pause = self._next - now
        if pause > 0 and stop.wait(min(pause, 60)) and pause > 5:
            raise WaitError("waiting for a turn to call the API: the engine asked to stop. Run the command again.")
