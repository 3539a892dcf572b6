"""A publisher of archives on the loopback, with every bad habit that a test asks for."""

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Publisher:
    """Published files by path, each with its fault; ``asked`` remembers (path, Range) of every request."""

    files: dict[str, bytes] = field(default_factory=dict)
    port: int = 0
    cut_after: list[int] = field(default_factory=list)
    """After so many bytes of each of the next answers the connection is cut."""
    codes: list[int] = field(default_factory=list)
    redirect: str | None = None
    tag: str | None = '"one"'
    ranges: bool = True
    claimed: int | None = None
    """The length that it claims, whatever comes."""
    login: str | None = None
    """The only header of authorization that is let in."""
    asked: list[tuple[str, str | None]] = field(default_factory=list)

    def address(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}/{path}"


@contextmanager
def published(**files: bytes) -> Iterator[Publisher]:
    publisher = Publisher({name: content for name, content in files.items()})
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"publisher": publisher}))
    publisher.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield publisher
    finally:
        server.shutdown()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    publisher: Publisher
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        publisher = self.publisher
        wanted = self.headers.get("Range")
        publisher.asked.append((self.path, wanted))
        self.close_connection = True
        if publisher.codes:
            self.send_error(publisher.codes.pop(0))
            return
        if publisher.login and self.headers.get("Authorization") != publisher.login:
            self.send_error(401)
            return
        if publisher.redirect:
            self._head(302, 0, Location=publisher.redirect)
            return
        content = publisher.files.get(self.path.lstrip("/"))
        if content is None:
            self.send_error(404)
            return
        start = self._start(wanted)
        if start and start >= len(content):
            self.send_error(416)
            return
        length = publisher.claimed if publisher.claimed is not None else len(content) - start
        given = {"ETag": publisher.tag} if publisher.tag else {}
        if start:
            given["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
        self._head(206 if start else 200, length, **given)
        body = content[start:]
        self.wfile.write(body[: publisher.cut_after.pop(0)] if publisher.cut_after else body)

    def _start(self, wanted: str | None) -> int:
        if not (wanted and self.publisher.ranges) or self.headers.get("If-Range") != self.publisher.tag:
            return 0
        return int(re.fullmatch(r"bytes=(\d+)-", wanted)[1])

    def _head(self, code: int, length: int, **headers: str) -> None:
        self.send_response(code)
        for name, value in {"Content-Length": str(length), "Connection": "close", **headers}.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, *words: object) -> None:
        """Say nothing."""
