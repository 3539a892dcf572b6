"""Adding and growing a guest's data disks: an upgrade order of our own, because the official client's picks the wrong disk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from providers.softlayer import guests, placing
from providers.softlayer.account import Account
from providers.softlayer.calls import made_id
from providers.softlayer.errors import ProviderError
from providers.softlayer.guests import Guest
from providers.softlayer.listing import GUEST_MASK
from providers.softlayer.session import Operation
from providers.softlayer.waiting import Pending, wait_until

KIND = "DiskUpgrade"
UPGRADE_ORDER = "SoftLayer_Container_Product_Order_Virtual_Guest_Upgrade"
PRICE_MASK = "mask[id,locationGroupId,categories[id,categoryCode],item[keyName,capacity,units,description]]"


def is_shrinking(old_gb: Sequence[int], new_gb: Sequence[int]) -> bool:
    """Tell whether a disk would be taken away or made smaller, which the service cannot do."""
    return len(new_gb) < len(old_gb) or any(new < old for old, new in zip(old_gb, new_gb, strict=False))


def categories(live_gb: Sequence[int], wanted_gb: Sequence[int]) -> dict[str, int]:
    """Name the billing category of each disk to order, with its size; the first data disk is ``guest_disk1``."""
    padded = [*live_gb, *[0] * len(wanted_gb)]
    return {f"guest_disk{n}": size for n, size in enumerate(wanted_gb, start=1) if size != padded[n - 1]}


def grow_disks(op: Operation, account: Account, owner_mark: str, guest: Guest, wanted_gb: Sequence[int]) -> Guest:
    """Order the missing and larger disks, which restarts the guest, and return the guest once they are there."""
    guest_id, name = int(guest["id"]), guests.described(guest)
    if not _missing(guest, wanted_gb):
        return guest

    def look() -> Guest | Pending | None:
        """Judge by disks and open requests; a transaction may begin late, or be over already."""
        found = _read(account, guest_id)
        if not _missing(found, wanted_gb) or account.api.read("Virtual_Guest", "getUpgradeRequest", id=guest_id):
            return found
        transaction = guests.transaction_name(found)
        return Pending(f"in transaction {transaction}, which has to end first") if transaction else None

    def prepare() -> tuple[Any, Callable[[], str]]:
        container = _container(account, guest_id, _missing(_read(account, guest_id), wanted_gb))
        return container, lambda: _send(account, container)

    def grown() -> Guest | Pending:
        found = _read(account, guest_id)
        return Pending("its new disks are not there yet") if _missing(found, wanted_gb) else guests.readiness(found)

    placing.obtain(op, account, placing.Wanted(f"disks for {name}", owner_mark, KIND, look, prepare, key_ids=()))
    return wait_until(f"the disks of {name}", grown, op.patience, op.log.progress)


def _missing(guest: Guest, wanted_gb: Sequence[int]) -> dict[str, int]:
    return categories(guests.data_disks(guest) or [], wanted_gb)


def _read(account: Account, guest_id: int) -> Guest:
    found = account.api.find("Virtual_Guest", str(guest_id), GUEST_MASK)
    if found is None:
        raise ProviderError(f"guest {guest_id} is gone. Run 'pulumi up --refresh'.")
    return found


def _send(account: Account, container: dict[str, Any]) -> str:
    answer = account.api.once("Product_Order", "placeOrder", container)
    return made_id({"id": answer.get("orderId")} if isinstance(answer, dict) else None, "Product_Order::placeOrder")


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
