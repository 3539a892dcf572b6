"""Fabric's connection to one address: its port, one key, one pinned host key and time limits."""

import contextlib
import logging
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import fabric
import paramiko

from microcluster.remote import host_key
from microcluster.remote.errors import UnreachableError

MACHINE_SSH_PORT = 22
"""SSH port of the machines; a training container has its own, `container.sshPort` of the stack file."""
CONNECT_TIMEOUT_S = 10.0
REQUEST_TIMEOUT_S = 120.0
SILENT_S = 90.0
MOST_UNREAD_BYTES = 8 << 20
"""Four times what a channel allows its peer to send before somebody reads."""
TCP_LIMITS = {"TCP_KEEPIDLE": 15, "TCP_KEEPINTVL": 15, "TCP_KEEPCNT": 6, "TCP_USER_TIMEOUT": int(SILENT_S * 1000)}
"""The kernel asks a quiet peer, and ends a connection that was silent for SILENT_S, whether it sends or waits."""


def pinned_connection(address: str, user: str, port: int, key_file: str, pinned_key: str) -> fabric.Connection:
    """Return a connection that opens only if the host shows ``pinned_key``."""
    options = {"key_filename": key_file, "allow_agent": False, "look_for_keys": False}
    limits = {
        "banner_timeout": CONNECT_TIMEOUT_S,
        "auth_timeout": CONNECT_TIMEOUT_S,
        "channel_timeout": REQUEST_TIMEOUT_S,
    }
    connection = fabric.Connection(
        address,
        user=user,
        port=port,
        config=fabric.Config(lazy=True, overrides={"load_ssh_configs": False}),
        connect_timeout=CONNECT_TIMEOUT_S,
        connect_kwargs={**options, **limits, "transport_factory": watched},
        forward_agent=False,
    )
    key = host_key.parse(pinned_key)
    connection.client.get_host_keys().add(known_name(address, port), key.get_name(), key)
    connection.client.set_missing_host_key_policy(paramiko.RejectPolicy())
    return connection


def known_name(address: str, port: int) -> str:
    """Return an address as files of known hosts name it: the usual port stands without brackets."""
    return address if port == MACHINE_SSH_PORT else f"[{address}]:{port}"


def watched(connected: socket.socket, **options: Any) -> paramiko.Transport:
    """Return a transport whose socket notices a peer that is gone; a parameter of paramiko's ``connect``.

    Paramiko's own keepalive does not wait for answers. A system leaves out what it does not have.
    """
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, limit in TCP_LIMITS.items():
        if hasattr(socket, name):
            connected.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), limit)
    transport = paramiko.Transport(connected, **options)
    # Paramiko takes all that a peer sends, whatever it was allowed to.
    transport._channel_handler_table = {
        **transport._channel_handler_table,
        paramiko.common.MSG_CHANNEL_DATA: _within_window(paramiko.Channel._feed),
        paramiko.common.MSG_CHANNEL_EXTENDED_DATA: _within_window(paramiko.Channel._feed_extended),
    }
    return transport


def _within_window(feed: Callable[[paramiko.Channel, paramiko.Message], None]) -> Callable[..., None]:
    """Return a function that takes a channel's data, and ends the connection of a peer that sends far more than is read."""

    def take(channel: paramiko.Channel, message: paramiko.Message) -> None:
        if len(channel.in_buffer) + len(channel.in_stderr_buffer) > MOST_UNREAD_BYTES:
            raise paramiko.SSHException("the peer sends more than it may")
        feed(channel, message)

    return take


@contextlib.contextmanager
def answered(transport: paramiko.Transport, limit_s: float | None = None) -> Iterator[None]:
    """End the connection when the block takes longer than that, or SILENT_S: in it paramiko waits for sshd without a limit.

    A machine whose sshd hangs may still have a kernel that answers.
    """
    late = threading.Timer(limit_s or SILENT_S, transport.close)
    late.daemon = True
    late.start()
    try:
        yield
    except (OSError, EOFError, paramiko.SSHException) as error:
        if late.finished.is_set():
            raise TimeoutError(f"silent for {late.interval:.0f} s") from error
        raise
    finally:
        late.cancel()


@contextlib.contextmanager
def without_login(host: str, address: str, port: int) -> Iterator[paramiko.Transport]:
    """Yield a connection to ``host`` on which nobody logs in."""
    try:
        with (
            socket.create_connection((address, port), CONNECT_TIMEOUT_S) as tcp,
            contextlib.closing(paramiko.Transport(tcp)) as transport,
        ):
            yield transport
    except (OSError, EOFError, paramiko.SSHException) as error:
        raise UnreachableError(f"connecting to {host}: {reason(error)}.") from error


logging.getLogger("paramiko").setLevel(logging.CRITICAL + 1)
"""Its threads would print a traceback, with what a machine has sent; each failure is raised where the connection is used."""


def command_bytes(command: str) -> bytes:
    """Return a line as the machine gets it: a file's name may be no UTF-8 there."""
    return command.encode("utf-8", "surrogateescape")


def reason(error: BaseException) -> str:
    """Return the error's message without its number."""
    return (getattr(error, "strerror", None) or str(error) or type(error).__name__).rstrip(".")
