"""Adding and growing a guest's data disks: an upgrade order of our own, because the official client's picks the wrong disk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from providers.softlayer import guests
from providers.softlayer.account import Account
from providers.softlayer.errors import ApiError, ProviderError
from providers.softlayer.guests import Guest
from providers.softlayer.listing import GUEST_MASK
from providers.softlayer.waiting import Patience, Pending, wait_until

UPGRADE_ORDER = "SoftLayer_Container_Product_Order_Virtual_Guest_Upgrade"
PRICE_MASK = "mask[id,locationGroupId,categories[id,categoryCode],item[keyName,capacity,units,description]]"


def is_shrinking(old_gb: Sequence[int], new_gb: Sequence[int]) -> bool:
    """Tell whether a disk would be taken away or made smaller, which the service cannot do."""
    return len(new_gb) < len(old_gb) or any(new < old for old, new in zip(old_gb, new_gb, strict=False))


def categories(live_gb: Sequence[int], wanted_gb: Sequence[int]) -> dict[str, int]:
    """Name the billing category of each disk to order, with its size; the first data disk is ``guest_disk1``."""
    padded = [*live_gb, *[0] * len(wanted_gb)]
    return {f"guest_disk{n}": size for n, size in enumerate(wanted_gb, start=1) if size != padded[n - 1]}


def grow_disks(
    account: Account, guest: Guest, wanted_gb: Sequence[int], patience: Patience, before: Callable[[], None]
) -> Guest:
    """Order the missing and larger disks, which restarts the guest, and return the guest once they are there."""
    api, guest_id = account.api, int(guest["id"])
    missing = categories(guests.data_disks(guest) or [], wanted_gb)
    if not missing:
        return guest
    if not api.read("Virtual_Guest", "getUpgradeRequest", id=guest_id):
        container = _container(account, guest_id, missing)
        before()
        try:
            api.once("Product_Order", "placeOrder", container)
        except ApiError as error:
            if not error.is_weather:
                raise ProviderError(f"ordering disks for guest {guest_id}: {error.text} ({error.code}).") from error
            # The wait below tells whether it was accepted; it never orders again.

    def look() -> Guest | Pending:
        found = account.api.find("Virtual_Guest", str(guest_id), GUEST_MASK)
        if found is None:
            raise ProviderError(f"guest {guest_id} is gone. Run 'pulumi up --refresh'.")
        if categories(guests.data_disks(found) or [], wanted_gb):
            return Pending("its new disks are not there yet")
        return guests.readiness(found)

    return wait_until(f"the disks of guest {guest_id}", look, patience)


def _container(account: Account, guest_id: int, missing: dict[str, int]) -> dict[str, Any]:
    item = account.api.read(
        "Virtual_Guest", "getBillingItem", id=guest_id, mask="mask[id,orderItem[package[id],presetId]]"
    )
    ordered = item.get("orderItem") or {}
    offered = account.api.read("Virtual_Guest", "getUpgradeItemPrices", True, id=guest_id, mask=PRICE_MASK)
    return {
        "complexType": UPGRADE_ORDER,
        "packageId": (ordered.get("package") or {}).get("id"),
        "presetId": ordered.get("presetId"),
        "virtualGuests": [{"id": guest_id}],
        "prices": [_price(offered, category, size) for category, size in missing.items()],
        "properties": [{"name": "MAINTENANCE_WINDOW", "value": "NOW"}],
    }


def _price(offered: Sequence[dict[str, Any]], category: str, size: int) -> dict[str, Any]:
    for price in offered:
        codes = [each.get("categoryCode") for each in price.get("categories") or []]
        if category in codes and not price.get("locationGroupId") and _capacity(price) == size:
            return {
                "id": price["id"],
                "complexType": "SoftLayer_Product_Item_Price",
                "categories": [{"categoryCode": category, "complexType": "SoftLayer_Product_Item_Category"}],
            }
    raise ProviderError(
        f"looking for a price of {size} GB as {category}: the account offers none. Choose another size."
    )


def _capacity(price: dict[str, Any]) -> int | None:
    try:
        return int(float(price["item"]["capacity"]))
    except (KeyError, TypeError, ValueError):
        return None
