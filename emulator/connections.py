"""HTTP connections that the application may cut, as a network does."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.requests import Request
from uvicorn.protocols.http.h11_impl import H11Protocol

CONNECTION = "emulator.connection"


class BreakableProtocol(H11Protocol):
    """uvicorn's own protocol, which hands its connection on to the application."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Remember the connection for every request on it."""
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
