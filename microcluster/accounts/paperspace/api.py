"""Calls to the REST API v1: a time limit on each, reads tried again after transient faults, everything else sent exactly once."""

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any
from urllib.parse import quote

import requests

from microcluster.accounts.shared.api_calls import READ_ATTEMPTS, Moved, OnceAdapter, Row, Wire
from microcluster.accounts.shared.errors import NO_ANSWER, NOT_SENT, NOT_TRUSTED, UNREADABLE, CallError

CALLS_PER_SECOND = 10
"""The vendor documents no limit, only that there is one (code TOO_MANY_REQUESTS)."""
LONGEST_CALL_S = 60.0
"""Longest life of a request: later than this after ``Api.once``, no request of it can reach the account."""
LISTS_LAG_S = 60.0
"""No document says that lists lag; clients of the live service have read what they made at once. A guess on the safe side."""
CONNECT_TIMEOUT_S = 10.0
PAGE_SIZE = 100
MOST_PAGES = 200
ERROR_KEYS = {"code", "message", "details", "issues"}
REFUSING = {400, 401, 403, 404, 405, 409, 412, 413, 422, 429}
"""HTTP statuses of requests that were not carried out.

Sources: RFC 9110, section 15.5, and the vendor's own table of codes (errors.ts of its client).
"""
OPEN_CODES = {"TIMEOUT", "CLIENT_CLOSED_REQUEST", "INTERNAL_SERVER_ERROR"}
"""The service's own codes that leave open whether the call was carried out."""

ADMIN = "Team settings > Members > the user > Admin"

ReadPage = Callable[..., dict[str, Any]]


class ApiError(CallError):
    """The API refused a call or did not answer it."""

    grant = ADMIN
    when_forbidden = (
        f"Use the key of an admin of the team ({ADMIN}), or ask the vendor whether the team's limit is reached."
    )

    @property
    def is_gone(self) -> bool:
        """Tell whether the object does not exist, or is none of this team's."""
        return self.status == 404

    @property
    def is_rate_limit(self) -> bool:
        """Tell whether there were too many calls; the call was turned away before it did anything."""
        return self.status == 429 or self.code in ("TOO_MANY_REQUESTS", NOT_SENT)

    @property
    def is_transient(self) -> bool:
        """Tell whether the same call may work in a moment."""
        is_lost = self.code in (NO_ANSWER, UNREADABLE, *OPEN_CODES)
        return self.is_rate_limit or is_lost or self.status >= 500 or self.status in (408, 499)

    @property
    def is_refusal(self) -> bool:
        """Tell whether the call was certainly not carried out; a fault that nobody knows is none."""
        if self.is_rate_limit or self.code == NOT_TRUSTED:
            return True
        return self.status in REFUSING and self.code not in OPEN_CODES

    @property
    def is_forbidden(self) -> bool:
        """Tell whether this user may not do it: no repetition helps."""
        return self.status in (401, 403)

    @property
    def is_unauthorised(self) -> bool:
        """Tell whether the API refused the key itself."""
        return self.status == 401


class Api(Wire):
    """One account's API."""

    fault = ApiError
    per_second = CALLS_PER_SECOND

    def connect(self) -> requests.Session:
        """Make the session of one thread."""

        def sign(request: requests.PreparedRequest) -> requests.PreparedRequest:
            request.headers["Authorization"] = f"Bearer {self.credentials.api_key}"
            return request

        session = requests.Session()
        for scheme in ("http://", "https://"):
            session.mount(scheme, OnceAdapter())
        session.auth = sign  # And no header of the session, whose place a `.netrc` would take.
        session.trust_env = not self.credentials.is_local
        session.verify = self.credentials.authority or True
        return session

    def read(self, path: str, *, attempts: int = READ_ATTEMPTS, expect: Any = dict, **query: Any) -> Any:
        """Read something; transient faults are tried again.

        Args:
            expect: what the answer has to be; anything else is transient too.
        """
        return self.repeated(f"GET {path}", partial(self.once, "GET", path, **query), expect, attempts)

    def find(self, path: str, object_id: str) -> Row | None:
        """Read one object; None when it does not exist (404, or ``null`` for networks) or is shown as deleted."""
        found = self.found(lambda: self.read(f"{path}/{quote(object_id, safe='')}", expect=dict | None))
        return found if found and not found.get("dtDeleted") else None

    def list(self, path: str, *, order_by: str = "dtCreated", **filters: str) -> list[Row]:
        """Read a whole list, without what it shows as deleted; a filter may be ignored.

        The API gives no total: that a row slipped out between two pages is noticed only where two readings name other things.
        """
        readings: list[set[str]] = []

        def read() -> list[Row]:
            rows, pages = _read_pages(partial(self.read, path, **filters), path, order_by)
            readings.append({_key(row) for row in rows})
            if pages > 1 and readings[-1] not in readings[-2:-1]:
                raise Moved("two readings differ")
            return rows

        return [row for row in self.whole(f"GET {path}", read) if not row.get("dtDeleted")]

    def ensure(self, method: str, path: str, body: Mapping[str, Any]) -> Row:
        """Bring about a state that the call itself describes (a name, a switch): sending it twice does no harm."""
        return self.repeated(f"{method} {path}", partial(self.once, method, path, body), dict)

    def remove(self, path: str, object_id: str) -> None:
        """Delete something that answers at once; what is gone already is fine."""
        place = f"{path}/{quote(object_id, safe='')}"
        self.found(lambda: self.repeated(f"DELETE {path}", partial(self.once, "DELETE", place)))

    def once(self, method: str, path: str, body: Mapping[str, Any] | None = None, **query: Any) -> Any:
        """Send a call exactly once: orders and cancellations, whose lost answers are resolved by looking."""
        call = f"{method} {path}"
        try:
            with self.sending(call, LONGEST_CALL_S) as session:
                answer = session.request(
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
            raise self.error(call, code, str(error)) from None
        except (requests.RequestException, OSError) as error:
            raise self.error(call, NO_ANSWER, str(error) or type(error).__name__) from None
        self.heed(answer.headers)
        return self._read_answer(call, answer)

    def _read_answer(self, call: str, answer: requests.Response) -> Any:
        try:
            # Bytes that are no text, and halves of surrogate pairs, which nothing can write again, become readable here.
            text = answer.content.decode("utf-8", "replace")
            content = json.loads(json.dumps(json.loads(text), ensure_ascii=False).encode("utf-8", "replace"))
        except (ValueError, RecursionError):
            code = UNREADABLE if answer.status_code == 200 else f"HTTP {answer.status_code}"
            raise self.error(call, code, "the answer is no JSON", answer.status_code) from None
        is_error = isinstance(content, dict) and {"code", "message"} <= content.keys() <= ERROR_KEYS
        if answer.status_code == 200 and not is_error:
            return content
        code, message = f"HTTP {answer.status_code}", ""
        if is_error:
            issues = content.get("issues") if isinstance(content.get("issues"), list) else []
            details = [str(each.get("message")) for each in issues if isinstance(each, dict)]
            code, message = str(content["code"]), "; ".join([str(content["message"]), *details])
        raise self.error(call, code, message or "no text", answer.status_code)


def _read_pages(read: ReadPage, path: str, order_by: str) -> tuple[list[Row], int]:
    rows: list[Row] = []
    query: dict[str, Any] = {"limit": PAGE_SIZE, "orderBy": order_by, "order": "asc"}
    pages = 0
    while pages < MOST_PAGES:
        page = read(**query)
        items = page.get("items")
        if not isinstance(items, list) or not all(isinstance(row, dict) and _key(row) for row in items):
            raise ApiError(f"GET {path}", UNREADABLE, "it is no page of a list")
        rows, pages = [*rows, *items], pages + 1
        if not page.get("hasMore"):
            break
        cursor = page.get("nextPage")
        if not isinstance(cursor, str) or not cursor or cursor == query.get("after") or not items:
            raise Moved("a page names no next one")
        query = {**query, "after": cursor}
    else:
        raise ApiError(f"GET {path}", "truncated list", f"it has more than {MOST_PAGES} pages")
    places = [str(row.get(order_by) or "") for row in rows]
    if len({_key(row) for row in rows}) < len(rows) or (pages > 1 and places != sorted(places)):
        raise Moved("its pages do not continue each other")
    return rows, pages


def _key(row: Row) -> str:
    return str(row.get("id") or row.get("ip") or "")


def made_id(answer: Any, call: str) -> str:
    """Read the id of what a call made; a machine stands under ``data``, beside its event.

    Raises:
        ApiError: the answer names none; the call may have been carried out all the same.
    """
    made = answer.get("data", answer) if isinstance(answer, dict) else None
    if isinstance(made, dict) and isinstance(made.get("id"), str) and made["id"]:
        return made["id"]
    raise ApiError(call, UNREADABLE, "the answer names no id")
