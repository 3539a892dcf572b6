"""What only this machine may ask of the account, never a guest: scripted weather, a person's word on an order, the portal."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from emulator.settings import LOOPBACK
from emulator.softlayer import approval, portal
from emulator.softlayer.account import Account
from emulator.softlayer.fault_injection import BROKEN_TLS, WeatherError, read_one_off
from emulator.softlayer.faults import Fault

WORDS = {"approve": approval.approve, "refuse": approval.refuse}
Handler = Callable[[Request], Awaitable[Response]]


def routes(account: Account) -> list[Route]:
    """The paths for tests and for the command line."""

    async def add_fault(request: Request) -> Response:
        try:
            one_off = read_one_off(json.loads(await request.body()))
            if one_off.weather.kind == BROKEN_TLS and not account.settings.tls:
                raise WeatherError(f"The weather {BROKEN_TLS} needs an account that is served over TLS.")
        except (WeatherError, ValueError, TypeError, AttributeError) as wrong:
            return JSONResponse({"error": str(wrong)}, 400)
        with account.lock:
            account.sky.one_offs.append(one_off)
        return JSONResponse({"faults": len(account.sky.one_offs)})

    async def clear_faults(request: Request) -> Response:
        with account.lock:
            account.sky.one_offs.clear()
        return JSONResponse({"faults": 0})

    async def decide(request: Request) -> Response:
        return await run_in_threadpool(_decided, account, request.path_params["order"], request.path_params["word"])

    async def order_in_portal(request: Request) -> Response:
        try:
            wanted = json.loads(await request.body() or b"{}")
        except ValueError as wrong:
            return JSONResponse({"error": str(wrong)}, 400)
        return await run_in_threadpool(_ordered_in_portal, account, request.path_params["kind"], wanted)

    return [
        Route("/portal/{kind}", _from_here(order_in_portal), methods=["POST"]),
        Route("/orders/{order:int}/{word}", _from_here(decide), methods=["POST"]),
        Route("/faults", _from_here(add_fault), methods=["POST"]),
        Route("/faults", _from_here(clear_faults), methods=["DELETE"]),
    ]


def _decided(account: Account, number: int, word: str) -> Response:
    """A person's word on an order that waits."""
    if word not in WORDS:
        return JSONResponse({"error": f"An order is told to {' or '.join(WORDS)}, not to {word}."}, 404)
    with account.lock:
        try:
            WORDS[word](account, approval.order_of(account, number))
            account.store.flush()
        except Fault as refused:
            account.store.rollback()
            return JSONResponse({"error": refused.text}, 409)
        account.changed()
    return JSONResponse({"order": number, "status": account.store.orders[number].status})


def _ordered_in_portal(account: Account, kind: str, wanted: dict[str, Any]) -> Response:
    """A volume or a VLAN, with the members of ``portal.order``."""
    with account.lock:
        try:
            item = portal.order(account, kind, **wanted)
            account.store.flush()
        except (Fault, TypeError) as refused:
            account.store.rollback()
            return JSONResponse({"error": str(refused)}, 409)
        account.changed()
    return JSONResponse({"id": item.resource_id, "billing_item": item.id})


def _from_here(handler: Handler) -> Handler:
    """Answer only what came in over loopback: the account also listens on the network of its guests."""

    async def guarded(request: Request) -> Response:
        if (request.scope.get("server") or ("",))[0] != LOOPBACK:
            return JSONResponse({"error": "This can only be asked on the machine of the emulator."}, 403)
        return await handler(request)

    return guarded
