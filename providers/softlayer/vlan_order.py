"""Getting a VLAN: the one that an interrupted run ordered, found by the mark in its name, else a new order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from providers.softlayer import accepted, goods, placing, vlans
from providers.softlayer.account import Account
from providers.softlayer.calls import Api
from providers.softlayer.errors import ApiError, ProviderError
from providers.softlayer.goods import Row
from providers.softlayer.session import Operation
from providers.softlayer.vlan_spec import VlanSpec
from providers.softlayer.vlans import VLANS
from providers.softlayer.waiting import Pending

CONTAINER = "SoftLayer_Container_Product_Order_Network_Vlan"
PACKAGE = "NETWORK_VLAN"
ITEM_MASK = "mask[id,keyName,prices[id,locationGroupId]]"


def adopt_or_order(op: Operation, account: Account, spec: VlanSpec) -> str:
    """Return the id of the living VLAN, or that of a new order."""

    def prepare() -> tuple[Any, Callable[[], str]]:
        order = _prepared(account.api, spec)
        op.log.progress("ordering")
        return order, lambda: _send(account.api, order)

    wanted = placing.Wanted(
        what=f"VLAN {spec.name} ({spec.space} in {spec.datacenter})",
        mark=spec.mark,
        kind=VLANS.kind,
        look=lambda: _living(op, account, spec),
        prepare=prepare,
    )
    made = placing.obtain(op, account, wanted)
    return made if isinstance(made, str) else _adopt(op, spec, dict(made))


def container(spec: VlanSpec, package_id: int, place: int, items: list[Row]) -> dict[str, Any]:
    """Put the order together."""
    key = f"{spec.space}_NETWORK_VLAN"
    prices = [
        price["id"]
        for item in items
        if item.get("keyName") == key
        for price in item.get("prices") or []
        if not price.get("locationGroupId")
    ]
    if not prices:
        raise ProviderError(f"ordering VLAN {spec.name}: the account offers no {key}. Order it by hand and import it.")
    router = {"routerId": int(spec.router_id)} if spec.router_id else {}
    return {
        "complexType": CONTAINER,
        "packageId": package_id,
        "location": place,
        "quantity": 1,
        "prices": [{"id": prices[0]}],
        "useHourlyPricing": spec.hourly,
        "name": spec.account_name,
        **router,
    }


def _prepared(api: Api, spec: VlanSpec) -> dict[str, Any]:
    packages = api.read(
        "Product_Package", "getAllObjects", filter={"keyName": {"operation": PACKAGE}}, mask="mask[id,keyName]"
    )
    package = next((each["id"] for each in packages if each.get("keyName") == PACKAGE), None)
    if package is None:
        raise ProviderError(f"ordering VLAN {spec.name}: the account sells no package {PACKAGE}.")
    items = api.read("Product_Package", "getItems", id=package, mask=ITEM_MASK)
    return container(spec, package, goods.place_of(api, spec.datacenter, f"VLAN {spec.name}"), items)


def _send(api: Api, order: Mapping[str, Any]) -> str:
    made = goods.receipt_order(api.once("Product_Order", "placeOrder", dict(order)))
    if made is None:
        raise ApiError("calling Product_Order::placeOrder", "unreadable answer", "the receipt names no order")
    return made


def _living(op: Operation, account: Account, spec: VlanSpec) -> Row | Pending | None:
    shown = vlans.listed(account.api)
    named = [each for each in shown if each.get("name") == spec.account_name and not vlans.is_automatic(each)]
    found = VLANS.the_only(named, f"ordering VLAN {spec.name}")
    ordered, waiting = accepted.unseen(op, account, spec.mark, VLANS.kind, shown)
    return found or next(iter(ordered), None) or waiting


def _adopt(op: Operation, spec: VlanSpec, vlan: Row) -> str:
    there = {"datacenter": vlans.datacenter(vlan), "space": vlan.get("networkSpace")}
    here = {"datacenter": spec.datacenter, "space": spec.space}
    if spec.router_id:
        there, here = {**there, "routerId": vlans.router_id(vlan)}, {**here, "routerId": spec.router_id}
    differing = [f"{key} is {there[key]} there and {here[key]} here" for key in here if here[key] != there[key]]
    if differing:
        raise ProviderError(
            f"adopting VLAN {vlan['id']} ({vlan.get('name')}), which an earlier run ordered: {'; '.join(differing)}. Nothing "
            "was touched. Put the program back as it was, or cancel that VLAN, and run it again."
        )
    op.log.told(f"Goes on with VLAN {vlan['id']}, whose order was accepted before.")
    return str(vlan["id"])
