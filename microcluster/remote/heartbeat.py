"""Detects that the other end of an SSH connection has gone silent, and closes the connection then."""

from __future__ import annotations

import contextlib
import threading
from dataclasses import dataclass
from typing import Any

import paramiko

QUESTION = "keepalive@openssh.com"


@dataclass(frozen=True)
class Patience:
    """How often to ask a quiet peer, and how many questions without any answer mean that it is gone."""

    ask_every_s: float = 15.0
    unanswered: int = 6

    @property
    def silent_s(self) -> float:
        """Seconds from the last byte to the end of the connection."""
        return self.ask_every_s * self.unanswered


class CountingSocket:
    """A socket that counts how often something was received."""

    def __init__(self, plain: Any) -> None:
        """Wrap ``plain``, which paramiko has connected."""
        self._plain = plain
        self.received = 0

    def recv(self, size: int) -> bytes:
        """Receive as the plain socket does."""
        received = self._plain.recv(size)
        self.received += 1
        return received

    def __getattr__(self, name: str) -> Any:
        """Everything else is the plain socket's."""
        return getattr(self._plain, name)


def transport_factory(connected: Any, **options: Any) -> paramiko.Transport:
    """Make the transport that a Heartbeat can watch; a parameter of paramiko's ``connect``."""
    return paramiko.Transport(CountingSocket(connected), **options)


class Heartbeat:
    """Asks a quiet peer for an answer, which also keeps NATs awake, until the connection ends.

    Paramiko's own keepalive only sends. Any byte from the peer counts, so a full send buffer or a slow link is no silence.
    Questions are counted and not seconds, so a program that was suspended for a while gives up nothing.
    """

    def __init__(self, transport: paramiko.Transport, patience: Patience) -> None:
        """Begin at once; the thread ends with the transport."""
        self._transport, self.patience = transport, patience
        self.silent = False
        threading.Thread(target=self._watch, name="heartbeat", daemon=True).start()

    def _watch(self) -> None:
        question, unanswered, before = None, 0, -1
        while self._transport.is_active():
            received = self._transport.sock.received
            unanswered = unanswered + 1 if received == before else 0
            if unanswered >= self.patience.unanswered:
                self.silent = True
                self._transport.close()
                return
            if question is None or not question.is_alive():  # Asking blocks while nothing can be sent.
                question = threading.Thread(target=self._ask, name="heartbeat-question", daemon=True)
                question.start()
            before = received
            self._transport.join(self.patience.ask_every_s)

    def _ask(self) -> None:
        with contextlib.suppress(OSError, EOFError, paramiko.SSHException):  # Whoever uses the connection sees its end.
            self._transport.global_request(QUESTION)
