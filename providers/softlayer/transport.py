"""The official client's connection: a request is sent once, to the account alone, and ends in time."""

from __future__ import annotations

import json
import os
import re
import socket
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Self

import SoftLayer
from requests import Response
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

from providers.rental import waiting
from providers.softlayer.credentials import Credentials

CONNECT_TIMEOUT_S = 10.0
LONGEST_RETRY_AFTER_S = 15.0

_of_thread = threading.local()
UNREADABLE = re.compile(
    rb"[\x00-\x08\x0b\x0c\x0e-\x1f]|\xef\xbf[\xbe\xbf]|\xed[\xa0-\xbf][\x80-\xbf]"  # C0, U+FFFE, U+FFFF, surrogates
    rb"|&#(?:x([0-9a-fA-F]{1,9})|([0-9]{1,9}));"
)
INSTEAD = b"&#xFFFD;"
OTHER_ENCODING = re.compile(rb"""<\?xml[^>]*encoding=["'](?!utf-8)""", re.IGNORECASE)


class CallTimer:
    """Ends the request of this thread: after it nothing is sent any more, and no answer is waited for.

    The limits of ``requests`` count anew with every byte that comes.

    Raises:
        TimeoutError: at its end, when the time was over before; what came until then may be a part of an answer.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._is_over = False
        self._ends = waiting.now().seconds + seconds  # A computer may have slept before something is sent.
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
            if self._is_over or waiting.now().seconds >= self._ends:
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


def new_client(credentials: Credentials, hold: Callable[[float], None] = lambda _: None) -> SoftLayer.BaseClient:
    """Build an official client from these settings alone: it reads no file and, for a local account, no environment.

    Args:
        hold: called with the seconds for which an answer asks not to be called again.
    """
    is_rest = "/rest" in credentials.endpoint
    make = SoftLayer.RestTransport if is_rest else SoftLayer.XmlRpcTransport
    transport = make(
        endpoint_url=credentials.endpoint,
        timeout=(min(CONNECT_TIMEOUT_S, credentials.timeout_s), credentials.timeout_s),
        proxy=None if credentials.is_local else credentials.proxy,
        verify=credentials.authority or True,
    )
    session = transport.client
    for scheme in ("http://", "https://"):
        session.mount(scheme, OnceAdapter())
    # A redirected order would be sent twice, with the key, to whatever address an answer names.
    session.max_redirects = 0
    session.trust_env = not credentials.is_local

    readable = readable_json if is_rest else readable_xml

    def prepare(response: Response, *_: Any, **__: Any) -> None:
        hold(retry_after_s(response.headers))
        response._content = readable(response.content)  # The client parses it in the call that has read it.

    session.hooks["response"].append(prepare)
    sign = SoftLayer.BasicHTTPAuthentication if is_rest else SoftLayer.BasicAuthentication
    # The client reads ~/.softlayer unless it is given another file.
    auth = sign(credentials.username, credentials.api_key)
    return SoftLayer.BaseClient(auth=auth, transport=transport, config_file=os.devnull)


def retry_after_s(headers: Mapping[str, str]) -> float:
    """Read for how long an answer asks not to be called again; a date instead of seconds is passed over."""
    asked = str(headers.get("Retry-After") or "")
    return min(float(asked), LONGEST_RETRY_AFTER_S) if asked.isdigit() else 0.0


def readable_xml(body: bytes) -> bytes:
    """Put U+FFFD where a text holds what XML 1.0 forbids (its section 2.2), so that one name does not hide a whole list."""
    body = UNREADABLE.sub(_allowed, body)
    if OTHER_ENCODING.match(body):
        return body
    return body.decode("utf-8", "replace").encode()


def readable_json(body: bytes) -> bytes:
    """Put a question mark where a text holds half a surrogate pair, which nothing can write again."""
    if b"\\ud" not in body.lower():
        return body
    try:
        return json.dumps(json.loads(body), ensure_ascii=False).encode("utf-8", "replace")
    except ValueError:
        return body


def _allowed(found: re.Match[bytes]) -> bytes:
    digits, base = (found[1], 16) if found[1] else (found[2], 10)
    return found[0] if digits and _is_character(int(digits, base)) else INSTEAD


def _is_character(number: int) -> bool:
    return (
        number in (0x9, 0xA, 0xD)
        or 0x20 <= number <= 0xD7FF
        or 0xE000 <= number <= 0xFFFD
        or 0x10000 <= number <= 0x10FFFF
    )
