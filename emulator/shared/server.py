"""The HTTP server of one account: status, scripted faults, jumps of the clock, and the vendor's API beside them."""

import signal
import socket
from email.utils import formatdate
from pathlib import Path
from typing import Annotated, Any

import uvicorn
from pydantic import ConfigDict, Field, TypeAdapter
from pydantic.dataclasses import dataclass
from pydantic_core import from_json
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import MutableHeaders
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from emulator.shared.account import EmulatedAccount
from emulator.shared.callers import CheckedCallers, owners_alone, refusal
from emulator.shared.fault_injection import BROKEN_TLS, FaultInjectionError
from emulator.shared.machine_reconciler import MachineReconciler
from emulator.shared.package_index import PackageIndex
from emulator.shared.response_faults import BreakableProtocol
from emulator.shared.status import Holdings, status_of

GRACEFUL_SHUTDOWN_S = 3
LONGEST_JUMP_S = 10 * 365 * 86_400


@dataclass(frozen=True, config=ConfigDict(strict=True, extra="forbid"))
class Jump:
    """A test's request to move the clock."""

    seconds: Annotated[float, Field(ge=-LONGEST_JUMP_S, le=LONGEST_JUMP_S)]


class AccountDate:
    """The application with the account's own time in the `Date` of each answer, by which clients compare clocks."""

    def __init__(self, app: ASGIApp, account: EmulatedAccount) -> None:
        self._app, self._account = app, account

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the request."""

        async def dated(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)["Date"] = formatdate(self._account.now, usegmt=True)
            await send(message)

        await self._app(scope, receive, dated)


def application(account: EmulatedAccount, api: list[Route], holdings: Holdings, port: int) -> Starlette:
    """The HTTP application of one account: its status, its scripted faults, the vendor's API, and the package index."""

    async def read_status(request: Request) -> Response:
        return JSONResponse(await run_in_threadpool(lambda: status_of(account, holdings, port=port)))

    status = Route("/status", owners_alone(account.settings, read_status))
    return Starlette(
        routes=[status, *control_routes(account), *PackageIndex().routes(), *api],
        middleware=[Middleware(AccountDate, account=account), Middleware(CheckedCallers, settings=account.settings)],
    )


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
        ws="none",
        date_header=False,
        proxy_headers=False,  # A caller would say by a header who it is.
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
            scripted = account.fault_injector.model.read_scripted(from_json(await request.body()))
            if scripted.fault.kind == BROKEN_TLS and not account.settings.tls:
                raise FaultInjectionError(f"The fault {BROKEN_TLS} needs an account that is served over TLS.")
        except (ValueError, TypeError) as wrong:
            return refusal(400, str(wrong))
        with account.lock:
            account.fault_injector.scripted.append(scripted)
        return JSONResponse({"faults": len(account.fault_injector.scripted)})

    async def move_clock(request: Request) -> Response:
        try:
            seconds = TypeAdapter(Jump).validate_json(await request.body()).seconds
        except ValueError:
            return refusal(400, f'Send {{"seconds": SECONDS}}, at most {LONGEST_JUMP_S}; below 0 the clock goes back.')
        with account.lock:
            account.move_clock(seconds)
            account.store.flush()
        account.changed()
        return JSONResponse({"seconds": seconds})

    return [
        Route("/clock", owners_alone(account.settings, move_clock), methods=["POST"]),
        Route("/faults", owners_alone(account.settings, add_fault), methods=["POST"]),
    ]
