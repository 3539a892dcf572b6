"""Ordering a block volume: the container out of the package's own prices, and the volume that an order made."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from providers.softlayer import goods, volumes
from providers.softlayer.calls import Api
from providers.softlayer.errors import ApiError, ProviderError
from providers.softlayer.volume_spec import VolumeSpec

CONTAINER = "SoftLayer_Container_Product_Order_Network_Storage_AsAService"
CATEGORY = "storage_as_a_service"
SPACE, TIER, IOPS = "performance_storage_space", "storage_tier_level", "performance_storage_iops"
PACKAGE_MASK = (
    "mask[id,items[keyName,capacity,capacityMinimum,capacityMaximum,itemCategory[categoryCode],"
    "prices[id,locationGroupId,capacityRestrictionType,capacityRestrictionMinimum,capacityRestrictionMaximum,"
    "categories[categoryCode]]]]"
)
SYSTEM = "LINUX"
TIER_CAPACITY = {0.25: 100, 2: 200, 4: 300, 10: 1000}
"""The service's own numbers for its tiers."""

Item = Mapping[str, Any]


def prepared(api: Api, spec: VolumeSpec) -> dict[str, Any]:
    """Write the order, from what the account says that it sells."""
    wanted = {"categories": {"categoryCode": {"operation": CATEGORY}}, "statusCode": {"operation": "ACTIVE"}}
    packages = api.read("Product_Package", "getAllObjects", filter=wanted, mask=PACKAGE_MASK)
    selling = [package for package in packages if _prices(package["items"], CATEGORY)]
    if len(selling) != 1:
        raise ProviderError(f"ordering volume {spec.name}: the account sells {len(selling)} storage packages, not one.")
    return container(spec, selling[0], goods.place_of(api, spec.datacenter, f"volume {spec.name}"))


def container(spec: VolumeSpec, package: Mapping[str, Any], place: int) -> dict[str, Any]:
    """Put the order together."""
    speed = {"iops": spec.iops} if spec.iops is not None else {}
    return {
        "complexType": CONTAINER,
        "packageId": package["id"],
        "location": place,
        "quantity": 1,
        "prices": [{"id": price} for price in prices(spec, package["items"])],
        "useHourlyPricing": spec.hourly,
        "volumeSize": spec.size_gb,
        "osFormatType": {"keyName": SYSTEM},
        **speed,
    }


def prices(spec: VolumeSpec, items: Sequence[Item]) -> list[int]:
    """Choose the four prices of a volume: service, kind, space and level."""
    fixed = [_first(items, code, lambda item: True) for code in (CATEGORY, "storage_block")]
    if spec.iops is not None:
        space = _first(items, SPACE, lambda item: str(item["keyName"]).endswith("_GBS") and _holds(item, spec.size_gb))
        return [*fixed, space, _first(items, IOPS, lambda item: _holds(item, spec.iops or 0), spec.size_gb)]
    part = f"STORAGE_SPACE_FOR_{spec.iops_per_gb:g}_IOPS_PER_GB".replace(".", "_")
    space = _first(items, SPACE, lambda item: part in str(item["keyName"]) and _holds(item, spec.size_gb))
    level = TIER_CAPACITY[spec.iops_per_gb or 0]
    return [*fixed, space, _first(items, TIER, lambda item: int(float(item.get("capacity") or 0)) == level)]


def send(api: Api, order: Mapping[str, Any]) -> str:
    """Send the order once, and return the id under which its volume is found; the receipt names no volume."""
    made = goods.receipt_order(api.once("Product_Order", "placeOrder", dict(order)))
    if made is None:
        raise ApiError("calling Product_Order::placeOrder", "unreadable answer", "the receipt names no order")
    return made


def fits(volume: Mapping[str, Any], spec: VolumeSpec, username: str) -> bool:
    """Tell whether a volume without notes may be the one of a lost order: what was ordered, by us, and not labelled yet."""
    live = volumes.live_inputs(volume)
    wanted = {"datacenter": spec.datacenter, "sizeGb": spec.size_gb, "hourly": spec.hourly}
    wanted |= {"iops": spec.iops} if spec.iops is not None else {"iopsPerGb": spec.iops_per_gb}
    ours = goods.ordered_by(volume) in (None, username)
    return goods.is_billed(volume) and not volume.get("notes") and live == wanted and ours


def _first(items: Sequence[Item], code: str, wanted: Callable[[Item], bool], size_gb: int | None = None) -> int:
    for item in items:
        found = _prices([item], code, size_gb) if wanted(item) else []
        if found:
            return found[0]
    raise ProviderError(
        f"looking for a price of category {code}: the account offers none that fits. Choose another size."
    )


def _prices(items: Sequence[Item], code: str, size_gb: int | None = None) -> list[int]:
    """List the standard prices of a category, those for a certain space only if that is the space."""
    return [
        price["id"]
        for item in items
        for price in item.get("prices") or []
        if not price.get("locationGroupId")
        and code in [each.get("categoryCode") for each in price.get("categories") or []]
        and (size_gb is None or _for_space(price, size_gb))
    ]


def _for_space(price: Mapping[str, Any], size_gb: int) -> bool:
    if price.get("capacityRestrictionType") != "STORAGE_SPACE":
        return False
    return int(price["capacityRestrictionMinimum"]) <= size_gb <= int(price["capacityRestrictionMaximum"])


def _holds(item: Item, amount: int) -> bool:
    least, most = item.get("capacityMinimum"), item.get("capacityMaximum")
    return least not in (None, "") and most not in (None, "") and int(least) <= amount <= int(most)
