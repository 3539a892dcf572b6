"""Scripted faults, jumps of the clock, and the guard of everything that only this computer may ask of an account."""

import json
from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from emulator.account import EmulatedAccount
from emulator.fault_injection import BROKEN_TLS, FaultInjectionError
from emulator.settings import LOOPBACK

Handler = Callable[[Request], Awaitable[Response]]


def routes(account: EmulatedAccount) -> list[Route]:
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

    async def clear_faults(request: Request) -> Response:
        with account.lock:
            account.fault_injector.scripted.clear()
        return JSONResponse({"faults": 0})

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
        Route("/faults", from_this_computer(clear_faults), methods=["DELETE"]),
    ]


def from_this_computer(handler: Handler) -> Handler:
    """Answer only what came in over loopback: the account also listens on the network of its machines."""

    async def guarded(request: Request) -> Response:
        if (request.scope.get("server") or ("",))[0] != LOOPBACK:
            return JSONResponse({"error": "This can only be asked on the computer of the emulator."}, 403)
        return await handler(request)

    return guarded
