"""What an order of a block or file volume asks for, once it is read and found orderable."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from .account import Account
from .catalogue import Datacenter, Price
from .faults import ORDER_INVALID, Fault
from .templates import find_datacenter, number

CONTAINER = "SoftLayer_Container_Product_Order_Network_Storage_AsAService"
PACKAGE = "STORAGE_AS_A_SERVICE"
KINDS = {"storage_block": "block", "storage_file": "file"}
TIERS = {  # the key name of a tier: the part of its space's key name, and its operations a second and GB
    "LOW_INTENSITY_TIER": ("0_25", 0.25),
    "READHEAVY_TIER": ("2", 2),
    "WRITEHEAVY_TIER": ("4", 4),
    "10_IOPS_PER_GB": ("10", 10),
}
SYSTEMS = {"LINUX", "HYPER_V", "VMWARE", "WINDOWS_2008", "WINDOWS_GPT", "WINDOWS", "XEN"}


@dataclass(frozen=True)
class VolumeOrder:
    """One volume as ordered; ``prices`` are those of the whole, not of one GB."""

    kind: str
    datacenter: Datacenter
    capacity_gb: int
    iops: int
    tier: str | None
    system: str
    hourly: bool
    prices: tuple[Price, ...]


def read(account: Account, container: dict[str, Any]) -> VolumeOrder:
    """The volume that a container asks for."""
    prices = _prices(account, container)
    kind = next((KINDS[code] for code in prices if code in KINDS), None)
    if kind is None or "storage_as_a_service" not in prices:
        raise Fault(ORDER_INVALID, "The order has no price of category Storage as a Service, Block or File Storage.")
    size = number(container.get("volumeSize"), "volumeSize")
    space, tier, iops = _needed(prices, "performance_storage_space"), prices.get("storage_tier_level"), 0
    _check_amount(space, size, "volumeSize")
    if tier:
        part, per_gb = TIERS[tier.key_name]
        if space.key_name != f"STORAGE_SPACE_FOR_{part}_IOPS_PER_GB":
            raise Fault(ORDER_INVALID, f"Price # {space.id} ({space.key_name}) is not of tier {tier.key_name}.")
        iops = int(size * per_gb)
    else:
        iops = _performance(prices, container, space, size)
    amounts = {"performance_storage_space": size, "performance_storage_iops": iops}
    return VolumeOrder(
        kind=kind,
        datacenter=find_datacenter(account, container.get("location")),
        capacity_gb=size,
        iops=iops,
        tier=tier.key_name if tier else None,
        system=_system(container) if kind == "block" else "",
        hourly=bool(container.get("useHourlyPricing")),
        prices=tuple(_whole(price, amounts.get(code, 1)) for code, price in prices.items()),
    )


def _prices(account: Account, container: dict[str, Any]) -> dict[str, Price]:
    package = account.catalogue.package(PACKAGE)
    if container.get("packageId") not in (None, "", package.id, str(package.id)):
        raise Fault(ORDER_INVALID, f"Package {container['packageId']} does not sell volumes.")
    if number(container.get("quantity") or 1, "quantity") != 1:
        raise Fault(ORDER_INVALID, "One order is for one volume.")
    found: dict[str, Price] = {}
    for each in container.get("prices") or []:
        price = package.price(number(each.get("id"), "prices.id"))
        if price is None:
            raise Fault(ORDER_INVALID, f"Price # {each.get('id')} does not exist or is not valid for this package.")
        if price.category.code in found:
            raise Fault(ORDER_INVALID, f"There is more than one price of category {price.category.name}.")
        found[price.category.code] = price
    return found


def _performance(prices: dict[str, Price], container: dict[str, Any], space: Price, size: int) -> int:
    price = _needed(prices, "performance_storage_iops")
    if not space.key_name.endswith("_GBS"):
        raise Fault(ORDER_INVALID, f"Price # {space.id} ({space.key_name}) needs a price of a storage tier.")
    iops = number(container.get("iops"), "iops")
    _check_amount(price, iops, "iops")
    if price.with_space and not price.with_space.holds(size):
        raise Fault(ORDER_INVALID, f"Price # {price.id} ({price.description}) is not sold with {size} GB.")
    return iops


def _needed(prices: dict[str, Price], code: str) -> Price:
    if code not in prices:
        raise Fault(ORDER_INVALID, f"The order has no price of category '{code}'.")
    return prices[code]


def _check_amount(price: Price, amount: int, name: str) -> None:
    if price.span and not price.span.holds(amount):
        bounds = f"{price.span.least} to {price.span.most}"
        raise Fault(ORDER_INVALID, f"{name} {amount} is not sold under price # {price.id}, which is for {bounds}.")


def _system(container: dict[str, Any]) -> str:
    name = (container.get("osFormatType") or {}).get("keyName")
    if name not in SYSTEMS:
        raise Fault(ORDER_INVALID, f"osFormatType '{name or ''}' is not one of {', '.join(sorted(SYSTEMS))}.")
    return name


def _whole(price: Price, amount: int) -> Price:
    return dataclasses.replace(price, hourly=price.hourly * amount) if price.span else price
