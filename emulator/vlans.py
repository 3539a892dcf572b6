"""The life of an ordered VLAN: billed from its order until it is cancelled, which needs it to be empty."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from . import billing, networks
from .account import Account
from .catalogue import Datacenter, Price, Router
from .faults import ORDER_INVALID, Fault, not_found, public
from .orders import lines_of
from .records import BillingItem, Guest, Order, Vlan
from .templates import find_datacenter, number

CONTAINER = "SoftLayer_Container_Product_Order_Network_Vlan"
PACKAGE = "NETWORK_VLAN"
PRIVATE_ITEM = "PRIVATE_NETWORK_VLAN"
NAME_LENGTH = 20


@dataclass(frozen=True)
class VlanOrder:
    """One VLAN as ordered."""

    router: Router
    name: str
    hourly: bool
    prices: tuple[Price, ...]


def read(account: Account, container: dict[str, Any]) -> VlanOrder:
    """The VLAN that a container asks for; without a router it is placed behind the first of the datacenter."""
    package = account.catalogue.package(PACKAGE)
    prices = [package.price(number(each.get("id"), "prices.id")) for each in container.get("prices") or []]
    if len(prices) != 1 or prices[0] is None or number(container.get("quantity") or 1, "quantity") != 1:
        raise Fault(ORDER_INVALID, "An order of a VLAN has one price, of a private or a public VLAN, and quantity 1.")
    private = prices[0].key_name == PRIVATE_ITEM
    place = find_datacenter(account, container.get("location"))
    router = _router(account, container.get("routerId"), place, private=private)
    name = checked_name(str(container.get("name") or ""))
    return VlanOrder(router, name, bool(container.get("useHourlyPricing")), (prices[0],))


def place(account: Account, wanted: VlanOrder) -> Order:
    """Accept an order: the VLAN is there at once."""
    total = account.catalogue.cost(wanted.prices, hourly=wanted.hourly)
    lines = lines_of(wanted.prices)
    order = Order(account.next_id(), account.now, str(total), wanted.hourly, lines, [], kind="vlan")
    account.store.orders[order.id] = order
    vlan = networks.new_vlan(account, wanted.router)
    described = billing.Billed("vlan", vlan.id, wanted.router.datacenter.name, category="network_vlan")
    vlan.billing_item_id = billing.open_item(account, order, wanted.prices, described, hourly=wanted.hourly).id
    vlan.name = wanted.name
    return order


def checked_name(name: str) -> str:
    """A name that a VLAN may have."""
    if len(name) > NAME_LENGTH:
        raise public(f"The name of a VLAN may have {NAME_LENGTH} characters; '{name}' has {len(name)}.")
    return name


def inhabitants(account: Account, vlan: Vlan) -> list[Guest]:
    """The guests with an interface on a VLAN, also those that are being reclaimed."""
    every = account.store.guests.look()
    return [guest for guest in every if any(component.vlan_id == vlan.id for component in guest.components)]


def failure_reasons(account: Account, vlan: Vlan) -> list[str]:
    """What keeps a VLAN from being cancelled: all that still lives on it."""
    return [f"Virtual guest {guest.id} ({guest.name}) is on VLAN {vlan.id}." for guest in inhabitants(account, vlan)]


def cannot_end(account: Account, item: BillingItem) -> str | None:
    """What keeps a VLAN from being cancelled now, as a sentence."""
    return " ".join(failure_reasons(account, account.store.vlans[item.resource_id])) or None


def end(account: Account, item: BillingItem) -> None:
    """Take a VLAN away."""
    del account.store.vlans[item.resource_id]


def _router(account: Account, router_id: Any, place: Datacenter, *, private: bool) -> Router:
    if not router_id:
        here = [each for each in account.catalogue.routers if (each.datacenter, each.private) == (place, private)]
        return here[0]
    router = account.catalogue.router(number(router_id, "routerId"))
    if router is None:
        raise not_found(router_id)
    if (router.datacenter, router.private) != (place, private):
        space = "private" if private else "public"
        raise public(f"Router {router.hostname} does not carry {space} VLANs in {place.name}.")
    return router
