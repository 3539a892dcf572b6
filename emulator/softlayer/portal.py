"""What people do outside the API: approve orders, and order volumes and VLANs in the vendor's portal.

Each volume and VLAN has a billing item. Tests order them to see how the product treats things that no stack declares.
"""

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from emulator.server import from_this_computer
from emulator.softlayer import billing, guests, networks
from emulator.softlayer.account import Account
from emulator.softlayer.cancellation import VLAN, VOLUME
from emulator.softlayer.catalog import Datacenter, Price
from emulator.softlayer.create_template import find_datacenter
from emulator.softlayer.faults import Fault, public
from emulator.softlayer.orders import lines_of
from emulator.softlayer.records import BillingItem, Order

DECISIONS = {"approve": guests.approve, "refuse": guests.refuse}
OFFERS = {
    VOLUME: (189433, "STORAGE_AS_A_SERVICE", "Storage as a Service", "storage_as_a_service", "0.03"),
    VLAN: (203719, "PRIVATE_NETWORK_VLAN", "Private Network Vlan", "network_vlan", "0.015"),
}


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
        DECISIONS[decision](account, guests.order_of(account, number))
        return {"order": number, "status": account.store.orders[number].status}

    return _changing(account, act)


def _order_in_portal(account: Account, kind: str, wanted: dict[str, Any]) -> Response:
    """Order a volume or a VLAN, with the arguments of ``order``."""

    def act() -> dict[str, Any]:
        item = order(account, kind, **wanted)
        return {"id": item.resource_id, "billing_item": item.id}

    return _changing(account, act)


def _changing(account: Account, act: Callable[[], dict[str, Any]]) -> Response:
    """Do it whole or not at all."""
    try:
        with account.lock, account.change():
            return JSONResponse(act())
    except (Fault, TypeError) as refused:
        return JSONResponse({"error": refused.text if isinstance(refused, Fault) else str(refused)}, 409)


def order(
    account: Account, kind: str, text: str = "", datacenter: str = "lon04", *, hourly: bool = True, notes: str = ""
) -> BillingItem:
    """Order a volume or a private VLAN (``text``: its name); ``notes``: the billing item's."""
    if kind not in OFFERS:
        raise public(f"The portal orders a {' or a '.join(OFFERS)}, not a {kind}.")
    place = find_datacenter(account, datacenter)
    prices = (_price(account, kind),)
    placed = Order(
        account.next_id(),
        account.now,
        str(account.catalog.cost(prices, hourly=hourly)),
        hourly,
        lines_of(prices),
        [],
        kind,
    )
    account.store.orders[placed.id] = placed
    described = billing.Billed(kind, 0, place.name, category=prices[0].category.code, notes=notes)
    item = billing.open_item(account, placed, prices, described, hourly=hourly)
    item.resource_id = _vlan(account, item, text, place) if kind == VLAN else account.next_id()
    return item


def _price(account: Account, kind: str) -> Price:
    number, key_name, description, category, fee = OFFERS[kind]
    return Price(number, number, key_name, description, account.catalog.categories[category], Decimal(fee))


def _vlan(account: Account, item: BillingItem, name: str, place: Datacenter) -> int:
    router = next(each for each in account.catalog.routers if each.private and each.datacenter == place)
    vlan = networks.new_vlan(account, router)
    vlan.name, vlan.billing_item_id = name, item.id
    return vlan.id
