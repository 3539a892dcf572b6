"""HTTP for accounts: a request is sent once and ends in time."""

import socket
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Self

from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

from providers.rental import waiting

LONGEST_RETRY_AFTER_S = 15.0

_of_thread = threading.local()


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


def retry_after_s(headers: Mapping[str, str]) -> float:
    """Read for how long an answer asks not to be called again; a date instead of seconds is passed over."""
    asked = str(headers.get("Retry-After") or "")
    return min(float(asked), LONGEST_RETRY_AFTER_S) if asked.isdigit() else 0.0
