"""The HTTP server of one account: status, scripted faults, jumps of the clock, and the vendor's API beside them."""

import json
import signal
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from emulator.account import EmulatedAccount
from emulator.fault_injection import BROKEN_TLS, FaultInjectionError
from emulator.machine_reconciler import MachineReconciler
from emulator.package_index import PackageIndex
from emulator.response_faults import BreakableProtocol
from emulator.settings import LOOPBACK
from emulator.status import Holdings, status_of

GRACEFUL_SHUTDOWN_S = 3
Handler = Callable[[Request], Awaitable[Response]]


def application(account: EmulatedAccount, api: list[Route], holdings: Holdings, port: int) -> Starlette:
    """The HTTP application of one account: its status, its scripted faults, the vendor's API, and the package index."""

    async def read_status(request: Request) -> Response:
        return JSONResponse(await run_in_threadpool(lambda: status_of(account, holdings, port=port)))

    return Starlette(routes=[Route("/status", read_status), *control_routes(account), *PackageIndex().routes(), *api])


def serve(
    app: Any, sockets: list[socket.socket], reconciler: MachineReconciler | None, identity: Path | None = None
) -> None:
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
    if reconciler:
        reconciler.start()
    try:
        server.run(sockets=sockets)
    finally:
        if reconciler:
            reconciler.stop()


def control_routes(account: EmulatedAccount) -> list[Route]:
    """The paths with which tests script faults and move the clock."""

    async def add_fault(request: Request) -> Response:
        try:
            scripted = account.fault_injector.model.read_scripted(json.loads(await request.body()))
            if scripted.fault.kind == BROKEN_TLS and not account.settings.tls:
                raise FaultInjectionError(f"The fault {BROKEN_TLS} needs an account that is served over TLS.")
        except (FaultInjectionError, ValueError, TypeError, AttributeError) as wrong:
            return JSONResponse({"error": str(wrong)}, 400)
        with account.lock:
            account.fault_injector.scripted.append(scripted)
        return JSONResponse({"faults": len(account.fault_injector.scripted)})

    async def move_clock(request: Request) -> Response:
        try:
            seconds = float(json.loads(await request.body())["seconds"])
        except (ValueError, TypeError, KeyError):
            return JSONResponse({"error": 'Send {"seconds": SECONDS}; below 0 the clock goes back.'}, 400)
        with account.lock:
            account.move_clock(seconds)
            account.store.flush()
        account.changed()
        return JSONResponse({"seconds": seconds})

    return [
        Route("/clock", from_this_computer(move_clock), methods=["POST"]),
        Route("/faults", from_this_computer(add_fault), methods=["POST"]),
    ]


def from_this_computer(handler: Handler) -> Handler:
    """Answer only what came in over loopback: the account also listens on the network of its machines."""

    async def guarded(request: Request) -> Response:
        if (request.scope.get("server") or ("",))[0] != LOOPBACK:
            return JSONResponse({"error": "This can only be asked on the computer of the emulator."}, 403)
        return await handler(request)

    return guarded
