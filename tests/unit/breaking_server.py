"""A server on a real socket that reads every request to its end, keeps it, and then does what a test wants."""

import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from emulator.machines.certificates import server_identity

Break = Callable[[ssl.SSLSocket | socket.socket], None]
ALERT = b"\x15\x03\x03\x00\x02\x02\x28"
NO_LINGER = struct.pack("ii", 1, 0)


class BreakingServer(ThreadingHTTPServer):
    """Listens on a port of its own, with TLS if it is given a folder for its certificate."""

    daemon_threads = True

    def __init__(self, act: Break, folder: Path | None = None) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.act = act
        self.requests: list[bytes] = []
        self.authority: str | None = None
        self.scheme = "http"
        if folder:
            certificate, key = server_identity("localhost", "127.0.0.1")
            (folder / "server.pem").write_text(certificate + key)
            (folder / "authority.pem").write_text(certificate)
            self.authority = str(folder / "authority.pem")
            self.scheme = "https"
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(folder / "server.pem")
            self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)

    def endpoint(self, path: str) -> str:
        """Return the address of a path on this server."""
        return f"{self.scheme}://127.0.0.1:{self.server_port}{path}"

    def handle_error(self, *_: object) -> None:
        """Say nothing of what a test has broken."""

    def shutdown_request(self, request: Any) -> None:
        """Leave without another word."""
        request.close()


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.requests.append(self.raw_requestline + bytes(self.headers) + content)
        self.close_connection = True
        self.server.act(self.connection)

    do_GET = do_CONNECT = do_POST


@contextmanager
def breaking_server(act: Break, folder: Path | None = None) -> Iterator[BreakingServer]:
    """Run a server that does ``act`` with each connection that has sent a request."""
    server = BreakingServer(act, folder)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


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
