"""The emulator's HTTP server: its process, and how a response is sent with an injected fault."""

import asyncio
import signal
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from emulator import admin
from emulator.account import EmulatedAccount
from emulator.connections import BreakableProtocol, break_stream, cut
from emulator.fault_injection import BROKEN_TLS, InjectedFault
from emulator.package_index import PackageIndex
from emulator.response_faults import with_fault

GRACEFUL_SHUTDOWN_S = 3


class Background(Protocol):
    """What runs beside the server, such as the machine reconciler."""

    def start(self) -> None: ...

    def stop(self) -> None: ...


def application(account: EmulatedAccount, api: list[Route], status: Callable[[], dict[str, Any]]) -> Starlette:
    """The HTTP application of one account: its status, its scripted faults, the vendor's API, and the package index."""

    async def read_status(request: Request) -> Response:
        return JSONResponse(await run_in_threadpool(status))

    routes = [Route("/status", read_status), *admin.routes(account), *PackageIndex().routes(), *api]
    return Starlette(routes=routes)


def serve(app: Any, sockets: list[socket.socket], background: Background | None, identity: Path | None = None) -> None:
    """Answer calls until a signal ends the process; over https if there is a certificate."""
    config = uvicorn.Config(
        app,
        http=BreakableProtocol,
        log_config=None,
        access_log=False,
        lifespan="off",
        ssl_certfile=identity,
        timeout_graceful_shutdown=GRACEFUL_SHUTDOWN_S,
    )
    server = uvicorn.Server(config)
    # uvicorn repeats the signal that ended it, and a signal may come before uvicorn listens for it. Neither may end the
    # process before the cleanup, and no signal may get lost.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, server.handle_exit)
    if background:
        background.start()
    try:
        server.run(sockets=sockets)
    finally:
        if background:
            background.stop()


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
