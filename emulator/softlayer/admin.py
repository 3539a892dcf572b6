"""What people do outside the API: approve orders, and order in the vendor's portal."""

import json
from collections.abc import Callable
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from emulator.server import from_this_computer
from emulator.softlayer import addon_orders, approval
from emulator.softlayer.account import Account
from emulator.softlayer.faults import Fault

DECISIONS = {"approve": approval.approve, "refuse": approval.refuse}


def routes(account: Account) -> list[Route]:
    """The paths for tests and for the command line."""

    async def decide(request: Request) -> Response:
        number, decision = request.path_params["order"], request.path_params["decision"]
        return await run_in_threadpool(_decide, account, number, decision)

    async def order_in_portal(request: Request) -> Response:
        try:
            wanted = json.loads(await request.body() or b"{}")
        except ValueError as wrong:
            return JSONResponse({"error": str(wrong)}, 400)
        return await run_in_threadpool(_order_in_portal, account, request.path_params["kind"], wanted)

    return [
        Route("/portal/{kind}", from_this_computer(order_in_portal), methods=["POST"]),
        Route("/orders/{order:int}/{decision}", from_this_computer(decide), methods=["POST"]),
    ]


def _decide(account: Account, number: int, decision: str) -> Response:
    """Approve or refuse an order that waits."""
    if decision not in DECISIONS:
        return JSONResponse({"error": f"One can {' or '.join(DECISIONS)} an order, not {decision} it."}, 404)

    def act() -> dict[str, Any]:
        DECISIONS[decision](account, approval.order_of(account, number))
        return {"order": number, "status": account.store.orders[number].status}

    return _changing(account, act)


def _order_in_portal(account: Account, kind: str, wanted: dict[str, Any]) -> Response:
    """Order a volume or a VLAN, with the arguments of ``addon_orders.order``."""

    def act() -> dict[str, Any]:
        item = addon_orders.order(account, kind, **wanted)
        return {"id": item.resource_id, "billing_item": item.id}

    return _changing(account, act)


def _changing(account: Account, act: Callable[[], dict[str, Any]]) -> Response:
    """Do it whole or not at all."""
    try:
        with account.lock, account.change():
            return JSONResponse(act())
    except (Fault, TypeError) as refused:
        return JSONResponse({"error": refused.text if isinstance(refused, Fault) else str(refused)}, 409)
