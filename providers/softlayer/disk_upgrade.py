"""Adding and growing a guest's data disks: an upgrade order of our own, because the official client's picks the wrong disk."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from providers.rental import owner_mark as marks
from providers.rental.errors import ProviderError
from providers.rental.operation import Operation
from providers.rental.waiting import Pending, wait_until
from providers.softlayer import guest_view, idempotent_order, order_status
from providers.softlayer.account import Account
from providers.softlayer.cached_lists import GUEST_MASK
from providers.softlayer.calls import made_id
from providers.softlayer.guest_view import Guest

KIND = "DiskUpgrade"
REQUEST_MASK = "mask[id,orderId,completedFlag]"
UPGRADE_ORDER = "SoftLayer_Container_Product_Order_Virtual_Guest_Upgrade"
Row = Mapping[str, Any]
PRICE_MASK = "mask[id,locationGroupId,categories[id,categoryCode],item[keyName,capacity,units,description]]"


def is_shrinking(old_gb: Sequence[int], new_gb: Sequence[int]) -> bool:
    """Tell whether a disk would be taken away or made smaller, which the service cannot do."""
    return len(new_gb) < len(old_gb) or any(new < old for old, new in zip(old_gb, new_gb, strict=False))


def categories(live_gb: Sequence[int], wanted_gb: Sequence[int]) -> dict[str, int]:
    """Name the billing category of each disk to order, with its size; the first data disk is ``guest_disk1``."""
    padded = [*live_gb, *[0] * len(wanted_gb)]
    return {f"guest_disk{n}": size for n, size in enumerate(wanted_gb, start=1) if size != padded[n - 1]}


def grow_disks(op: Operation, account: Account, owner: marks.Owner, guest: Guest, wanted_gb: Sequence[int]) -> Guest:
    """Order the missing and larger disks, which restarts the guest, and return the guest once they are there."""
    guest_id, name = int(guest["id"]), guest_view.described(guest)
    if not _missing(guest, wanted_gb):
        return guest

    def look() -> Guest | Pending | None:
        """Judge by disks, open requests and orders that wait; a transaction may begin late, or be over already."""
        found, request = _read(account, guest_id), _request(account, guest_id)
        if not _missing(found, wanted_gb) or _is_open(request):
            return {"id": request["orderId"]} if request else found
        transaction = guest_view.transaction_name(found)
        if transaction:
            return Pending(f"in transaction {transaction}, which has to end first")
        order = waiting_order(account.order_list.under(owner), found) or newest_order()
        if order_status.is_waiting(order):
            return _awaited(order)
        return _unshown(order, request) if order and str(order["id"]) in fresh() else None

    def fresh() -> set[str]:
        return set(idempotent_order.fresh(op, account, owner.mark, KIND))

    def prepare() -> tuple[Any, Callable[[], str]]:
        container = _container(account, guest_id, _missing(_read(account, guest_id), wanted_gb))
        return container, lambda: _send(account, container)

    def grown() -> Guest | Pending:
        request = _request(account, guest_id)
        found = _read(account, guest_id)
        if not _missing(found, wanted_gb):
            return guest_view.readiness(found)
        order = newest_order()
        closed = request is not None and order is not None and request.get("orderId") == order["id"]
        if order_status.is_refused(order) or (
            closed and not _is_open(request) and not guest_view.transaction_name(found)
        ):
            raise ProviderError(
                f"growing the disks of {name}: {order_status.described(order)}, and its upgrade ended without them. "
                "Run the command again, or ask the vendor."
            )
        return _awaited(order) if order_status.is_waiting(order) else Pending("its new disks are not there yet")

    def newest_order() -> Row | None:
        """Read the last order of this guest's disks that was accepted."""
        made = op.journal(owner.mark).accepted(account.identity().account_id, KIND)
        numbers = [each for each, intent in made.items() if intent.name == op.name]
        return account.api.find("Billing_Order", numbers[-1], idempotent_order.ORDER_MASK) if numbers else None

    idempotent_order.obtain(
        op, account, idempotent_order.Wanted(f"disks for {name}", owner.mark, KIND, look, prepare, key_ids=())
    )
    return wait_until(f"the disks of {name}", grown, op.deadline, op.log.progress)


def _request(account: Account, guest_id: int) -> Row | None:
    """Read the guest's newest upgrade request; a finished one stays listed."""
    return account.api.read("Virtual_Guest", "getUpgradeRequest", id=guest_id, mask=REQUEST_MASK) or None


def _is_open(request: Row | None) -> bool:
    return bool(request) and not request.get("completedFlag")


def waiting_order(listed: Sequence[Row], guest: Guest) -> Row | None:
    """Find an order for this guest that waits for a person; nothing of it shows on the guest before it is approved."""
    name = {key: guest.get(key) for key in ("hostname", "domain")}
    return order_status.of_guest(name, [each for each in listed if order_status.is_waiting(each)])


def _unshown(order: Row, request: Row | None) -> Pending | None:
    """Wait for the upgrade of an order that was accepted only now; None if it ended already, or the order was refused."""
    if order_status.is_refused(order) or (request and request.get("orderId") == order["id"]):
        return None
    return Pending(f"{order_status.described(order)}, and its upgrade is not shown yet")


def _awaited(order: Row | None) -> Pending:
    return Pending(f"{order_status.described(order)}, which a person at the vendor or in the account has to approve")


def _missing(guest: Guest, wanted_gb: Sequence[int]) -> dict[str, int]:
    return categories(guest_view.data_disks(guest) or [], wanted_gb)


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
