"""What only this machine may ask of the account, never a guest: scripted weather, and a person's word on an order."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from .account import Account
from .settings import LOOPBACK
from .weather import WeatherError, read_one_off

Handler = Callable[[Request], Awaitable[Response]]


def routes(account: Account) -> list[Route]:
    """The paths for tests and for the command line."""

    async def add_fault(request: Request) -> Response:
        try:
            one_off = read_one_off(json.loads(await request.body()))
        except (WeatherError, ValueError, TypeError, AttributeError) as wrong:
            return JSONResponse({"error": str(wrong)}, 400)
        with account.lock:
            account.sky.one_offs.append(one_off)
        return JSONResponse({"faults": len(account.sky.one_offs)})

    async def clear_faults(request: Request) -> Response:
        with account.lock:
            account.sky.one_offs.clear()
        return JSONResponse({"faults": 0})

    return [
        Route("/faults", _from_here(add_fault), methods=["POST"]),
        Route("/faults", _from_here(clear_faults), methods=["DELETE"]),
    ]


def _from_here(handler: Handler) -> Handler:
    """Answer only what came in over loopback: the account also listens on the network of its guests."""

    async def guarded(request: Request) -> Response:
        if (request.scope.get("server") or ("",))[0] != LOOPBACK:
            return JSONResponse({"error": "This can only be asked on the machine of the emulator."}, 403)
        return await handler(request)

    return guarded
