"""The vendor's portal: people approve orders there, and order volumes and VLANs.

Each volume and VLAN has a billing item. Tests order them to see how the product treats things that no stack declares.
"""

from collections.abc import Callable
from typing import Any

from pydantic import ConfigDict, ValidationError, validate_call
from pydantic_core import from_json
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from emulator.shared.callers import owners_alone, refusal
from emulator.shared.validation import problems_of
from emulator.softlayer import billing, guests, networks
from emulator.softlayer.account import Account
from emulator.softlayer.cancellation import NETWORK_VLAN
from emulator.softlayer.create_template import find_datacenter
from emulator.softlayer.faults import Fault, public
from emulator.softlayer.records import BillingItem, Fee, Order

DECISIONS = {"approve": guests.approve, "refuse": guests.refuse}
VOLUME, VLAN = "volume", "vlan"
OFFERS = {
    VOLUME: ("storage_as_a_service", "Storage as a Service", "0.03"),
    VLAN: (NETWORK_VLAN, "Private Network Vlan", "0.015"),
}


def routes(account: Account) -> list[Route]:
    """The paths for tests and for the command line."""

    async def decide(request: Request) -> Response:
        act = DECISIONS[request.path_params["decision"]]
        return await _changing(account, lambda: act(account, request.path_params["order"]))

    async def order_in_portal(request: Request) -> Response:
        body = await request.body()

        def act() -> dict[str, int]:
            item = order(account, request.path_params["kind"], **from_json(body or b"{}"))
            return {"id": item.resource_id, "billing_item": item.id}

        return await _changing(account, act)

    return [
        Route("/portal/{kind}", owners_alone(account.settings, order_in_portal), methods=["POST"]),
        Route("/orders/{order:int}/{decision}", owners_alone(account.settings, decide), methods=["POST"]),
    ]


async def _changing(account: Account, act: Callable[[], Any]) -> Response:
    """Change the account by one request, wholly or not at all."""

    def changed() -> Response:
        with account.lock, account.change():
            return JSONResponse(act())

    try:
        return await run_in_threadpool(changed)
    except ValidationError as wrong:
        return refusal(409, f"Reading the order: {problems_of(wrong)}.")
    except (Fault, TypeError, ValueError) as refused:
        return refusal(409, str(refused))


@validate_call(config=ConfigDict(strict=True, arbitrary_types_allowed=True))
def order(
    account: Account, kind: str, text: str = "", datacenter: str = "lon04", *, hourly: bool = True, notes: str = ""
) -> BillingItem:
    """Order a volume or a private VLAN (``text``: its name); ``notes``: the billing item's."""
    if kind not in OFFERS:
        raise public(f"The portal orders a {' or a '.join(OFFERS)}, not a {kind}.")
    category, description, fee = OFFERS[kind]
    place = find_datacenter(account, datacenter)
    placed = Order(account.next_id(), account.now, [("", "")])
    account.store.orders[placed.id] = placed
    item = BillingItem(
        id=account.next_id(),
        order_id=placed.id,
        resource_id=account.next_id(),
        hourly=hourly,
        opened=account.now,
        fees=[Fee(account.next_id(), category, description, fee)],
        notes=notes,
        category=category,
    )
    billing.open_item(account, item)
    if kind == VLAN:
        router = next(each for each in account.catalog.routers if each.private and each.datacenter == place)
        vlan = networks.new_vlan(account, router)
        vlan.name, vlan.billing_item_id, item.resource_id = text, item.id, vlan.id
    return item
