"""Billing items, orders and users as the API shows them.

The fees of a top-level item are those of the whole: its ``hourlyRecurringFee`` and ``currentHourlyCharge`` contain those of its children.
"""

from collections.abc import Sequence
from typing import Any

from emulator.softlayer import billing, guests, users
from emulator.softlayer.account import USER_ID, Account
from emulator.softlayer.catalog import DISK_CATEGORIES
from emulator.softlayer.dates import iso
from emulator.softlayer.queries import View
from emulator.softlayer.records import BillingItem, Fee, Order
from emulator.softlayer.users import User


def user(who: User) -> View:
    """A user of the account."""
    return View(
        {"id": USER_ID, "username": who.name, "isMasterUserFlag": False},
        {
            "hasFullVirtualGuestAccessFlag": lambda: users.ALL_GUESTS in who.permissions,
            "permissions": lambda: [{"keyName": each} for each in sorted(who.permissions)],
        },
    )


def order(account: Account, record: Order) -> View:
    """An order with its items: each names the guest that it was ordered for."""
    local = {"id": record.id, "createDate": iso(record.created), "status": guests.status_of(account, record)}
    items = [{"hostName": hostname, "domainName": domain} for hostname, domain in record.lines]
    return View(local, {"items": lambda: items})


def billed(account: Account, item_id: int | None) -> View | None:
    """The billing item of a thing, as long as it is billed; one that is pending cancellation is."""
    item = account.store.billing_items.read(item_id or 0)
    return item_view(account, item) if item and item.closed is None else None


def item_view(account: Account, item: BillingItem) -> View:
    """A top-level billing item."""
    top = next(fee for fee in item.fees if fee.category == item.category)
    parts = [fee for fee in item.fees if fee is not top]
    disks = [fee for fee in parts if fee.category in DISK_CATEGORIES[1:]]
    local = _money(account, item, item.fees) | {
        "id": item.id,
        "description": top.description,
        "categoryCode": item.category,
        "hostName": item.hostname,
        "domainName": item.domain,
        "notes": item.notes,
    }
    order_item = View(
        {"id": item.id},
        {
            "order": lambda: order(account, account.store.orders[item.order_id]),
            "preset": lambda: {"keyName": item.flavor} if item.flavor else None,
        },
    )

    def views(fees: list[Fee]) -> list[View]:
        return [View({"id": fee.id, **_money(account, item, [fee])}) for fee in fees]

    return View(
        local,
        {
            "hourlyFlag": lambda: item.hourly,
            "orderItem": lambda: order_item,
            "children": lambda: views(parts),
            "activeAssociatedGuestDiskBillingItems": lambda: views(disks if item.closed is None else []),
        },
    )


def _money(account: Account, item: BillingItem, fees: Sequence[Fee]) -> dict[str, Any]:
    """What parts of an item cost, and since when: charges and hours are those of the billing period that is shown."""
    begun, rate = billing.period_start(account, item), billing.rate(item, fees)
    count = billing.periods(item, account.now)
    if begun > item.opened:  # Earlier periods are on their invoices.
        count -= billing.periods(item, begun)
    charge = rate * count
    return {
        "createDate": iso(item.opened),
        "cycleStartDate": iso(begun),
        "cancellationDate": iso(billing.ended(item)),
        "hourlyRecurringFee": float(rate if item.hourly else 0),
        "recurringFee": float(charge if item.hourly else rate),
        "currentHourlyCharge": float(charge if item.hourly else 0),
        "hoursUsed": str(count if item.hourly else 0),
    }
