"""Closes an SSH connection when its other end is silent."""

import contextlib
import threading
from dataclasses import dataclass
from typing import Any

import paramiko

REQUEST = "keepalive@openssh.com"


@dataclass(frozen=True)
class Patience:
    """How often to ask a quiet peer, and after how many unanswered requests to give up."""

    ask_every_s: float = 15.0
    unanswered: int = 6

    @property
    def silent_s(self) -> float:
        """Seconds from the last byte to the end of the connection."""
        return self.ask_every_s * self.unanswered


class CountingSocket:
    """A socket that counts what it receives."""

    def __init__(self, plain: Any) -> None:
        self._plain = plain
        self.received = 0

    def recv(self, size: int) -> bytes:
        received = self._plain.recv(size)
        self.received += 1
        return received

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plain, name)


def transport_factory(connected: Any, **options: Any) -> paramiko.Transport:
    """Return a transport for a Heartbeat; a parameter of paramiko's ``connect``."""
    return paramiko.Transport(CountingSocket(connected), **options)


class Heartbeat:
    """Sends keepalive requests until the connection ends.

    Paramiko's own keepalive does not wait for answers. Any byte from the peer counts, so a slow link is no silence. Requests
    are counted, not seconds, so that suspending this program ends no connection.
    """

    def __init__(self, transport: paramiko.Transport, patience: Patience) -> None:
        self._transport, self.patience = transport, patience
        self.silent = False
        threading.Thread(target=self._watch, name="heartbeat", daemon=True).start()

    def _watch(self) -> None:
        request, unanswered, before = None, 0, -1
        while self._transport.is_active():
            received = self._transport.sock.received
            unanswered = unanswered + 1 if received == before else 0
            if unanswered >= self.patience.unanswered:
                self.silent = True
                self._transport.close()
                return
            if request is None or not request.is_alive():  # Sending may block.
                request = threading.Thread(target=self._ask, name="heartbeat-request", daemon=True)
                request.start()
            before = received
            self._transport.join(self.patience.ask_every_s)

    def _ask(self) -> None:
        with contextlib.suppress(OSError, EOFError, paramiko.SSHException):  # The connection's user gets the error.
            self._transport.global_request(REQUEST)
