"""A server on a real socket that reads every request to its end, counts it, and then does what a test wants."""

import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from emulator.machines.certificates import server_identity

Break = Callable[[ssl.SSLSocket | socket.socket], None]
ALERT = b"\x15\x03\x03\x00\x02\x02\x28"
NO_LINGER = struct.pack("ii", 1, 0)


class BreakingServer:
    """Listens on a port of its own, with TLS if it is given a folder for its certificate."""

    def __init__(self, act: Break, folder: Path | None = None) -> None:
        self.requests: list[bytes] = []
        self._act = act
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._context: ssl.SSLContext | None = None
        self.authority: str | None = None
        if folder:
            certificate, key = server_identity("localhost", "127.0.0.1")
            (folder / "server.pem").write_text(certificate + key)
            (folder / "authority.pem").write_text(certificate)
            self.authority = str(folder / "authority.pem")
            self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._context.load_cert_chain(folder / "server.pem")

    def endpoint(self, path: str) -> str:
        """Return the address of a path on this server."""
        return f"{'https' if self._context else 'http'}://127.0.0.1:{self._listener.getsockname()[1]}{path}"

    def serve(self) -> None:
        """Answer one connection after the other until the listener is closed."""
        while True:
            try:
                raw = self._listener.accept()[0]
            except OSError:
                return
            threading.Thread(target=self._answer, args=(raw,), daemon=True).start()

    def close(self) -> None:
        """Take no more connections."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _answer(self, raw: socket.socket) -> None:
        with suppress(OSError):
            connection = self._context.wrap_socket(raw, server_side=True) if self._context else raw
            with connection:
                self.requests.append(_request(connection))
                self._act(connection)


@contextmanager
def breaking_server(act: Break, folder: Path | None = None) -> Iterator[BreakingServer]:
    """Run a server that does ``act`` with each connection that has sent a request."""
    server = BreakingServer(act, folder)
    threading.Thread(target=server.serve, daemon=True).start()
    try:
        yield server
    finally:
        server.close()


def answer(status: int, body: bytes, headers: str = "") -> Break:
    """Return what answers a request whole; each header ends its line."""
    head = f"HTTP/1.1 {status} Any\r\nContent-Length: {len(body)}\r\nConnection: close\r\n{headers}\r\n"
    return lambda connection: connection.sendall(head.encode() + body)


def write_plainly(connection: Any, content: bytes) -> None:
    """Write below TLS."""
    with socket.socket(fileno=socket.dup(connection.fileno())) as raw:
        raw.sendall(content)


def reset(connection: Any) -> None:
    """Leave with a reset instead of an end."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGER)


def _request(connection: Any) -> bytes:
    content = b""
    while b"\r\n\r\n" not in content:
        content += _received(connection)
    head, _, body = content.partition(b"\r\n\r\n")
    lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    missing = int(lengths[0].split(b":")[1]) - len(body) if lengths else 0
    while missing > 0:
        more = _received(connection)
        content, missing = content + more, missing - len(more)
    return content


def _received(connection: Any) -> bytes:
    """Return what comes next; a client that has closed sends nothing any more, however often one asks."""
    content = connection.recv(65536)
    if not content:
        raise ConnectionResetError("the client closed before its request was whole")
    return content
