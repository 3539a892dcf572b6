"""An account on this machine that answers every call in one wrong way."""

import threading
import xmlrpc.client
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

API_KEY = "c0ffee0123456789c0ffee0123456789"
CONTROLS = "\x9b31m\u202e"
"""What XML lets through of all that a terminal obeys."""


def refuses(code: str, text: str) -> bytes:
    return xmlrpc.client.dumps(xmlrpc.client.Fault(code, text)).encode()


def answers(value: object) -> bytes:
    return xmlrpc.client.dumps((value,), methodresponse=True, allow_none=True).encode()


WAYS: dict[str, bytes | None] = {
    "refuses the key": refuses("SoftLayer_Exception_Public", "Invalid API token."),
    "refuses everything": refuses("SoftLayer_Exception_Public", f"no [/b] for {API_KEY} {CONTROLS}"),
    "breaks inside": refuses("SoftLayer_Exception", "Internal Error"),
    "is a gateway's page": b"<html><body>502 Bad Gateway</body></html>",
    "answers with something else": answers([{"surprise": CONTROLS}]),
    "answers with an object everywhere": answers({"id": 1, "companyName": CONTROLS}),
    "answers with rows that lack everything": answers([{}, {}]),
    "hangs up": None,
}


@contextmanager
def failing(way: str, folder: Path) -> Iterator[Path]:
    """Serve an account that fails in this way, and give the file with its key."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            content = WAYS[way]
            if content is None:
                self.close_connection = True
                return
            self.send_response(200)
            self.send_header("Content-Type", "text/xml")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    file = folder / "softlayer.conf"
    folder.mkdir(parents=True, exist_ok=True)
    address = f"http://127.0.0.1:{server.server_port}/xmlrpc/v3.1/"
    file.touch(mode=0o600)
    file.write_text(f"[softlayer]\nusername = somebody\napi_key = {API_KEY}\nendpoint_url = {address}\ntimeout = 5\n")
    try:
        yield file
    finally:
        server.shutdown()
        server.server_close()
