"""Calls to the REST API v1: a time limit on each, reads tried again after transient faults, everything else sent exactly once."""

import json
import threading
from collections.abc import Mapping
from functools import partial
from typing import Any
from urllib.parse import quote

import requests
import tenacity

from providers.paperspace.credentials import Credentials
from providers.paperspace.errors import UNREADABLE, ApiError
from providers.paperspace.paging import read_whole
from providers.rental import waiting
from providers.rental.errors import NO_ANSWER, NOT_SENT, NOT_TRUSTED
from providers.rental.http_once import CallTimer, OnceAdapter, retry_after_s
from providers.rental.redaction import redacted
from providers.rental.waiting import RateLimiter

CALLS_PER_SECOND = 10
"""The vendor documents no limit, only that there is one (code TOO_MANY_REQUESTS)."""
LONGEST_CALL_S = 60.0
"""So long after ``Api.once`` was called, at the latest, nothing of the call is on its way to the account any more."""
LISTS_LAG_S = 60.0
"""No document says that lists lag; clients of the live service have read what they made at once. A guess on the safe side."""
LONGEST_TURN_S = 20.0
CONNECT_TIMEOUT_S = 10.0
READ_ATTEMPTS = 8
FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 15.0
RATE_LIMIT_PAUSE_S = 1.0
ERROR_KEYS = {"code", "message", "details", "issues"}

Row = dict[str, Any]


class _Bearer(requests.auth.AuthBase):
    """Signs a request; as ``auth``, so that no ``.netrc`` takes its place."""

    def __init__(self, key: str) -> None:
        self._key = key

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = f"Bearer {self._key}"
        return request


class Api:
    """One account's API, callable from every thread: each has a session of its own, and all share one rate limit."""

    def __init__(self, credentials: Credentials, stop: threading.Event, time_scale: float = 1.0) -> None:
        self.credentials = credentials
        self._stop, self._time_scale = stop, time_scale
        self._local = threading.local()
        self._limiter = RateLimiter(CALLS_PER_SECOND / time_scale)

    def read(self, path: str, *, attempts: int = READ_ATTEMPTS, expect: type | None = dict, **query: Any) -> Any:
        """Read something; transient faults are tried again.

        Args:
            expect: what the answer has to be; anything else is transient too. None: whatever it is.
        """
        return self._repeated(partial(self.once, "GET", path, **query), attempts, expect)

    def find(self, path: str, object_id: str) -> Row | None:
        """Read one object; None when it does not exist (404, or ``null`` for networks) or is shown as deleted."""
        try:
            found = self.read(f"{path}/{quote(object_id, safe='')}", expect=dict | None)
        except ApiError as error:
            if error.is_gone:
                return None
            raise
        return found if found and not found.get("dtDeleted") else None

    def list(self, path: str, *, order_by: str = "dtCreated", **filters: str) -> list[Row]:
        """Read a whole list, without what it shows as deleted; a filter may be ignored."""
        rows = read_whole(lambda **query: self.read(path, **filters, **query), path, order_by, self._pause)
        return [row for row in rows if not row.get("dtDeleted")]

    def ensure(self, method: str, path: str, body: Mapping[str, Any]) -> Row:
        """Bring about a state that the call itself describes (a name, a switch): sending it twice does no harm."""
        return self._repeated(partial(self.once, method, path, body))

    def remove(self, path: str, object_id: str) -> None:
        """Delete something that answers at once; what is gone already is fine."""
        try:
            self._repeated(partial(self.once, "DELETE", f"{path}/{quote(object_id, safe='')}"), expect=None)
        except ApiError as error:
            if not error.is_gone:
                raise

    def once(self, method: str, path: str, body: Mapping[str, Any] | None = None, **query: Any) -> Any:
        """Send a call exactly once: orders and cancellations, whose lost answers are resolved by looking."""
        call, began = f"{method} {path}", waiting.now().seconds
        if not self._limiter.take(self._stop, LONGEST_TURN_S):
            raise ApiError(call, NOT_SENT, f"no turn within {LONGEST_TURN_S:g} s, as the account asks for pauses")
        try:
            with CallTimer(LONGEST_CALL_S - (waiting.now().seconds - began)):
                answer = self._session().request(
                    method,
                    self.credentials.endpoint + path,
                    json=body,
                    params={name: value for name, value in query.items() if value is not None},
                    timeout=(CONNECT_TIMEOUT_S, LONGEST_CALL_S),
                    # A redirected order would be sent twice, with the key, to whatever address an answer names.
                    allow_redirects=False,
                )
        except requests.exceptions.SSLError as error:
            code = NOT_TRUSTED if "CERTIFICATE_VERIFY_FAILED" in str(error) else NO_ANSWER
            raise self._error(call, code, str(error)) from None
        except (requests.RequestException, TimeoutError, OSError) as error:
            raise self._error(call, NO_ANSWER, str(error) or type(error).__name__) from None
        self._limiter.back_off(retry_after_s(answer.headers))
        return self._read_answer(call, answer)

    def _repeated(self, call: partial[Any], attempts: int = READ_ATTEMPTS, expect: Any = dict) -> Any:
        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception(lambda error: isinstance(error, ApiError) and error.is_transient),
            stop=tenacity.stop_after_attempt(attempts) | tenacity.stop_when_event_set(self._stop),
            wait=tenacity.wait_exponential_jitter(multiplier=FIRST_PAUSE_S, max=LONGEST_PAUSE_S, jitter=FIRST_PAUSE_S),
            sleep=lambda seconds: self._stop.wait(seconds * self._time_scale),
            reraise=True,
        )

        def shaped() -> Any:
            answer = call()
            if expect is not None and not isinstance(answer, expect):
                raise self._error(" ".join(call.args[:2]), UNREADABLE, f"it is {type(answer).__name__}")
            return answer

        return retrying(shaped)

    def _read_answer(self, call: str, answer: requests.Response) -> Any:
        try:
            # Bytes that are no text, and halves of surrogate pairs, which nothing can write again, become readable here.
            text = answer.content.decode("utf-8", "replace")
            found = json.loads(json.dumps(json.loads(text), ensure_ascii=False).encode("utf-8", "replace"))
        except (ValueError, RecursionError):
            code = UNREADABLE if answer.status_code == 200 else f"HTTP {answer.status_code}"
            raise self._error(call, code, "the answer is no JSON", answer.status_code) from None
        is_error = isinstance(found, dict) and {"code", "message"} <= found.keys() <= ERROR_KEYS
        if answer.status_code == 200 and not is_error:
            return found
        code, said = f"HTTP {answer.status_code}", ""
        if is_error:
            issues = found.get("issues") if isinstance(found.get("issues"), list) else []
            details = [str(each.get("message")) for each in issues if isinstance(each, dict)]
            code, said = str(found["code"]), "; ".join([str(found["message"]), *details])
        raise self._error(call, code, said or "no text", answer.status_code)

    def _pause(self) -> None:
        self._stop.wait(FIRST_PAUSE_S * self._time_scale)

    def _error(self, call: str, code: str, text: str, status: int = 0) -> ApiError:
        key = self.credentials.api_key
        error = ApiError(redacted(call, key), redacted(code, key), redacted(text, key), status)
        if error.is_rate_limit:
            self._limiter.back_off(RATE_LIMIT_PAUSE_S)
        return error

    def _session(self) -> requests.Session:
        session = getattr(self._local, "session", None)
        if session is None:
            session = self._local.session = requests.Session()
            for scheme in ("http://", "https://"):
                session.mount(scheme, OnceAdapter())
            session.auth = _Bearer(self.credentials.api_key)
            session.trust_env = not self.credentials.is_local
            session.verify = self.credentials.authority or True
        return session


def made_id(answer: Any, call: str) -> str:
    """Read the id of what a call made; a machine stands under ``data``, beside its event.

    Raises:
        ApiError: the answer names none; the call may have been carried out all the same.
    """
    made = answer.get("data", answer) if isinstance(answer, dict) else None
    if isinstance(made, dict) and isinstance(made.get("id"), str) and made["id"]:
        return made["id"]
    raise ApiError(call, UNREADABLE, "the answer names no id")
