"""Adding and growing a guest's data disks: an upgrade order of our own, because the official client's picks the wrong disk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from providers.rental import idempotent_order, reconcile
from providers.rental import owner_mark as marks
from providers.rental.backend import Backend, OrderRequest, Thing
from providers.rental.errors import ProviderError
from providers.rental.operation import Operation
from providers.rental.waiting import Pending, wait_until
from providers.softlayer import guest_view, order_status
from providers.softlayer.account import GUEST_MASK, Account
from providers.softlayer.guest_order import Order
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


@dataclass(frozen=True)
class DiskRequest:
    """Which disks a guest is to have."""

    guest_id: int
    owner: marks.Owner
    wanted_gb: tuple[int, ...]


def grow_disks(op: Operation, backend: Backend, owner: marks.Owner, guest: Guest, wanted_gb: Sequence[int]) -> Guest:
    """Order the missing and larger disks, which restarts the guest, and return the guest once they are there."""
    if not _missing(guest, wanted_gb):
        return guest
    what, spec = f"disks for {guest_view.described(guest)}", DiskRequest(int(guest["id"]), owner, tuple(wanted_gb))
    request = OrderRequest(KIND, owner, what, op.name, spec, is_named=False, key_ids=())
    idempotent_order.adopt_or_order(op, backend, request)
    grown = partial(_grown, op, backend, spec, guest_view.described(guest))
    return wait_until(f"the disks of {guest_view.described(guest)}", grown, op.deadline, op.log.progress)


def look(op: Operation, backend: Backend, request: OrderRequest) -> Thing | Pending | None:
    """Judge by disks, open requests and orders that wait; a transaction may begin late, or be over already."""
    account, spec = backend.account, request.spec
    found, upgrade = _read(account, spec.guest_id), _request(account, spec.guest_id)
    if not _missing(found, spec.wanted_gb) or _is_open(upgrade):
        order_id = str(upgrade["orderId"] if upgrade else found["id"])
        return Thing(KIND, order_id, request.name, spec.owner, request.what)
    transaction = guest_view.transaction_name(found)
    if transaction:
        return Pending(f"in transaction {transaction}, which has to end first")
    order = waiting_order(account.order_list.under(spec.owner), found) or _newest_order(op, backend, spec.owner)
    if order_status.is_waiting(order):
        return _awaited(order)
    is_fresh = order is not None and str(order["id"]) in reconcile.fresh(op, backend, spec.owner.mark, KIND)
    return _unshown(order, upgrade) if order and is_fresh else None


def prepare(account: Account, spec: DiskRequest) -> Order:
    """Write the order of the disks that are missing now."""
    missing = _missing(_read(account, spec.guest_id), spec.wanted_gb)
    content = _container(account, spec.guest_id, missing)
    return Order("Product_Order", "placeOrder", content, is_named_by_its_number=True)


def _grown(op: Operation, backend: Backend, spec: DiskRequest, name: str) -> Guest | Pending:
    upgrade = _request(backend.account, spec.guest_id)
    found = _read(backend.account, spec.guest_id)
    if not _missing(found, spec.wanted_gb):
        return guest_view.readiness(found)
    order = _newest_order(op, backend, spec.owner)
    closed = upgrade is not None and order is not None and upgrade.get("orderId") == order["id"]
    if order_status.is_refused(order) or (closed and not _is_open(upgrade) and not guest_view.transaction_name(found)):
        raise ProviderError(
            f"growing the disks of {name}: {order_status.described(order)}, and its upgrade ended without them. "
            "Run the command again, or ask the vendor."
        )
    return _awaited(order) if order_status.is_waiting(order) else Pending("its new disks are not there yet")


def _newest_order(op: Operation, backend: Backend, owner: marks.Owner) -> Row | None:
    """Read the last order of this guest's disks that was accepted."""
    made = op.journal(owner.mark).accepted(backend.identity().account_id, KIND)
    numbers = [each for each, intent in made.items() if intent.name == op.name]
    return backend.account.api.find("Billing_Order", numbers[-1], order_status.MASK) if numbers else None


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
