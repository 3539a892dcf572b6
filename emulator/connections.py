"""HTTP connections that the application can cut or break."""

import asyncio
import os
import socket
import struct
from typing import Any

from starlette.requests import Request
from uvicorn.protocols.http.h11_impl import H11Protocol

CONNECTION = "emulator.connection"
# Bytes that do not belong into a TLS stream.
FOREIGN_BYTES = {
    "plain_bytes": b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n",
    "alert": b"\x15\x03\x03\x00\x02\x02\x28",  # fatal: handshake failure
}
NO_LINGER = struct.pack("ii", 1, 0)


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
