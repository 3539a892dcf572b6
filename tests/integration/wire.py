"""A wire between a client and the account that counts the calls, keeps some of them back, and changes what is answered."""

import sys
import threading
import urllib.request
import xmlrpc.client
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


class Wire(ThreadingHTTPServer):
    """Forwards every call and counts it."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, endpoint: str) -> None:
        super().__init__(("127.0.0.1", 0), _Forward)
        self.endpoint = endpoint.rstrip("/")
        self.calls: list[str] = []
        self.held: dict[str, threading.Event] = {}
        """Answers to these methods are kept back until the event: the account has carried them out."""
        self.kept_back: dict[str, threading.Event] = {}
        """Calls of these methods do not reach the account before the event."""
        self.says: dict[str, object] = {}
        """Answer to a method of a service instead of the account's: a value, a fault, or a function."""
        self.misroots = False
        """Whether every filter gets lost on the way, so that the account lists everything, as for one that it ignores."""

    def config(self, original: Path, folder: Path) -> Path:
        """Write a client's file that leads over this wire."""
        lines = original.read_text().splitlines()
        address = f"endpoint_url = http://127.0.0.1:{self.server_address[1]}/xmlrpc/v3.1/"
        path = folder / "wire.conf"
        path.write_text("\n".join(address if line.startswith("endpoint_url") else line for line in lines) + "\n")
        return path

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a client that has given up: the words would stand in the output of whichever test runs then."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Forward(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        method = body.split(b"<methodName>")[1].split(b"<")[0].decode()
        if self.server.misroots:
            body = body.replace(b"ObjectFilter</name>", b"ObjectNothing</name>")
        self.server.calls.append(method)
        if method in self.server.kept_back:
            self.server.kept_back[method].wait(30)
        service = self.path.rsplit("/", 1)[1]
        request = urllib.request.Request(f"{self.server.endpoint}/{service}", body, {"Content-Type": "application/xml"})
        try:
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=30) as answer:
                content = answer.read()
        except OSError:  # The account has lost its answer.
            self.close_connection = True
            return
        service_method = f"{service.removeprefix('SoftLayer_')}::{method}"
        if service_method in self.server.says:
            said = self.server.says[service_method]
            said = said() if callable(said) else said
            answer = said if isinstance(said, xmlrpc.client.Fault) else (said,)
            content = xmlrpc.client.dumps(answer, methodresponse=True, allow_none=True).encode()
        if method in self.server.held:
            self.server.held[method].wait(30)
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        return


@contextmanager
def wire_to(endpoint: str) -> Iterator[Wire]:
    """Run a wire to an endpoint."""
    wire = Wire(endpoint)
    threading.Thread(target=wire.serve_forever, daemon=True).start()
    try:
        yield wire
    finally:
        wire.shutdown()
        wire.server_close()
