"""Orders of what stands beside guests: volumes, VLANs, portable volumes; one thing an order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from . import portable_disks, vlans, volume_orders, volumes
from .account import Account
from .containers import totals, write_price
from .records import Order

CONTAINERS = "orderContainers"
Container = dict[str, Any]


@dataclass(frozen=True)
class Kind:
    """How one kind of order is read and placed; what is read has ``prices`` and ``hourly``."""

    read: Callable[[Account, Container], Any]
    place: Callable[[Account, Any], Order]


KINDS = {
    volume_orders.CONTAINER: Kind(volume_orders.read, volumes.place),
    vlans.CONTAINER: Kind(vlans.read, vlans.place),
    portable_disks.CONTAINER: Kind(portable_disks.read, portable_disks.place),
}


def kind_of(container: Container) -> Kind | None:
    """The kind of a container, which may stand alone or as the only one among ``orderContainers``."""
    return KINDS.get(str(_inner(container).get("complexType")))


def verify(account: Account, container: Container) -> Container:
    """The container as it is echoed, with its totals; nothing is ordered."""
    inner = _inner(container)
    return _echoed(account, container, KINDS[inner["complexType"]].read(account, inner))


def place(account: Account, container: Container) -> tuple[Order, Container]:
    """Accept an order; it names no id of what it makes, neither here nor in reality."""
    inner = _inner(container)
    kind = KINDS[inner["complexType"]]
    wanted = kind.read(account, inner)
    return kind.place(account, wanted), _echoed(account, container, wanted)


def _inner(container: Container) -> Container:
    several = container.get(CONTAINERS) or []
    return several[0] if len(several) == 1 else container


def _echoed(account: Account, container: Container, wanted: Any) -> Container:
    cost = account.catalogue.cost(wanted.prices, hourly=wanted.hourly)
    prices = [write_price(account, price) for price in wanted.prices]
    full = {**_inner(container), "prices": prices, "quantity": 1} | totals(account, cost, is_hourly=wanted.hourly)
    if CONTAINERS not in container:
        return full
    return {**container, CONTAINERS: [full]} | totals(account, cost, is_hourly=wanted.hourly)
