"""Sending of a response with an injected fault: late, changed, cut off, or with a broken TLS stream."""

import asyncio
import os
import socket
import struct
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from uvicorn.protocols.http.h11_impl import H11Protocol

from emulator.shared.fault_injection import BROKEN_TLS, DROP, EMPTY, HTML, TRUNCATED, InjectedFault

CONNECTION = "emulator.connection"
# Bytes that do not belong into a TLS stream.
FOREIGN_BYTES = {
    "plain_bytes": b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n",
    "alert": b"\x15\x03\x03\x00\x02\x02\x28",  # fatal: handshake failure
}
NO_LINGER = struct.pack("ii", 1, 0)
PAGE = "<html><head><title>{0}</title></head><body><center><h1>{0}</h1></center><hr>nginx</body></html>"
REASONS = {
    429: "429 Too Many Requests",
    500: "500 Internal Server Error",
    502: "502 Bad Gateway",
    503: "503 Service Temporarily Unavailable",
    504: "504 Gateway Time-out",
}
RETRY_AFTER_S = 1


class BreakableProtocol(H11Protocol):
    """uvicorn's protocol; it also gives the application the connection of each request."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Add the connection to the scope of every request on it."""
        super().connection_made(transport)
        inner = self.app

        async def with_connection(scope: Any, receive: Any, send: Any) -> None:
            scope[CONNECTION] = transport
            await inner(scope, receive, send)

        self.app = with_connection


async def send(request: Request, response: Response, fault: InjectedFault) -> Response:
    """Send a response with its fault: late, changed, or not at all."""
    if fault.kind == "slow":
        await asyncio.sleep(fault.seconds)
    changed = with_fault(response, fault)
    if fault.kind == BROKEN_TLS:
        await break_stream(request, fault.way)
    elif changed is None:
        await cut(request)
    return changed or response


def with_fault(response: Response, fault: InjectedFault) -> Response | None:
    """The response that the caller gets instead; None when the connection is cut."""
    if fault.way == DROP or fault.kind == BROKEN_TLS:
        return None
    if fault.way.startswith("http_"):
        return _error_page(int(fault.way.removeprefix("http_")))
    bodies = {EMPTY: b"", TRUNCATED: response.body[: len(response.body) // 2]}
    if fault.way in bodies:
        return Response(bodies[fault.way], media_type=response.media_type)
    return html_page("Welcome to the hotel's network") if fault.way == HTML else response


def html_page(title: str) -> Response:
    """A page where an answer was expected, with status 200."""
    return Response(PAGE.format(title), media_type="text/html")


def _error_page(status: int) -> Response:
    headers = {"Retry-After": str(RETRY_AFTER_S)} if status in (429, 503) else {}
    return Response(PAGE.format(REASONS[status]), status, headers, media_type="text/html")


async def cut(request: Request) -> None:
    """Close the connection of a request without an answer."""
    request.scope[CONNECTION].abort()
    await asyncio.sleep(0)  # uvicorn learns of it before anything else is sent


async def break_stream(request: Request, way: str) -> None:
    """Break the TLS stream of a request: with foreign bytes, by its end without an alert, or by a reset."""
    descriptor = request.scope[CONNECTION].get_extra_info("socket").fileno()
    with socket.socket(fileno=os.dup(descriptor)) as raw:
        if way == "reset":
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGER)
        elif way in FOREIGN_BYTES:
            raw.send(FOREIGN_BYTES[way])
    await cut(request)
