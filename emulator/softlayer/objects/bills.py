"""Billing items, orders and users as the API shows them.

The fees of a top-level item are those of the whole: its ``hourlyRecurringFee`` and ``currentHourlyCharge`` contain those of its children.
"""

from collections.abc import Sequence
from typing import Any

from emulator.softlayer import billing, guests, users
from emulator.softlayer.account import Account
from emulator.softlayer.catalog import DISK_CATEGORIES
from emulator.softlayer.dates import iso
from emulator.softlayer.queries import View
from emulator.softlayer.records import BillingItem, Fee, Order
from emulator.softlayer.users import User


def user(account: Account, who: User) -> View:
    """A user of the account."""
    return View(
        {
            "id": who.id,
            "username": who.name,
            "displayName": who.name,
            "email": f"{who.name}@example.com",
            "isMasterUserFlag": False,
            "sslVpnAllowedFlag": False,
        },
        {
            "userStatus": lambda: {"keyName": "ACTIVE", "name": "Active"},
            "virtualGuests": lambda: [View({"id": each}) for each in account.store.guests if who.sees_guests],
            "apiAuthenticationKeys": lambda: [View({})],
            **dict.fromkeys(("hardware", "roles", "externalBindings"), list),
            "hasFullVirtualGuestAccessFlag": lambda: users.ALL_GUESTS in who.permissions,
            "permissions": lambda: [{"keyName": each} for each in sorted(who.permissions)],
        },
    )


def order(account: Account, record: Order) -> View:
    """An order with its items: each names the guest that it was ordered for."""
    local = {"id": record.id, "createDate": iso(record.created), "status": guests.status_of(account, record)}
    items = [{"hostName": hostname, "domainName": domain} for hostname, domain in record.lines]
    who = users.every(account).get(record.username or account.settings.username)
    return View(local, {"items": lambda: items, "userRecord": lambda: user(account, who) if who else None})


def billed(account: Account, item_id: int | None) -> View | None:
    """The billing item of a thing, as long as it is billed; one that is pending cancellation is."""
    item = account.store.billing_items.read(item_id or 0)
    return item_view(account, item) if item and item.closed is None else None


def item_view(account: Account, item: BillingItem) -> View:
    """A top-level billing item."""
    top = next(fee for fee in item.fees if fee.category == item.category)
    parts = [fee for fee in item.fees if fee is not top]
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
    guest = account.store.guests.read(item.resource_id)
    place = account.catalog.datacenter(guest.datacenter) if guest else None
    package = {"id": account.catalog.package_id, "keyName": account.catalog.package_key}

    return View(
        local,
        {
            "hourlyFlag": lambda: item.hourly,
            "nextInvoiceTotalRecurringAmount": lambda: local["recurringFee"],
            "package": lambda: package if item.flavor else None,
            "location": lambda: {"id": place.id, "name": place.name, "longName": place.long_name} if place else None,
            "orderItem": lambda: order_item,
            "children": lambda: [_part(account, item, fee) for fee in parts],
            "nextInvoiceChildren": lambda: [_part(account, item, fee) for fee in parts],
            "activeAssociatedGuestDiskBillingItems": lambda: [
                _part(account, item, fee)
                for fee in parts
                if fee.category in DISK_CATEGORIES[1:] and item.closed is None
            ],
        },
    )


def _part(account: Account, item: BillingItem, fee: Fee) -> View:
    """A child of a billing item."""
    local = {"id": fee.id, "description": fee.description, "categoryCode": fee.category, **_money(account, item, [fee])}
    return View(local, {"nextInvoiceTotalRecurringAmount": lambda: local["recurringFee"]})


def _money(account: Account, item: BillingItem, fees: Sequence[Fee]) -> dict[str, Any]:
    """Costs of parts of an item: charges and hours of this billing period, or of a closed item's last."""
    until = account.now if item.closed is None else min(item.closed, account.now)
    rate, count = billing.rate(item, fees), billing.recent_periods(account, item, until)
    charge = rate * count
    return {
        "createDate": iso(item.opened),
        "cycleStartDate": iso(billing.period_start(account, item, until)),
        "cancellationDate": iso(billing.ended(item)),
        "hourlyRecurringFee": float(rate if item.hourly else 0),
        "recurringFee": float(charge if item.hourly else rate),
        "currentHourlyCharge": float(charge if item.hourly else 0),
        "hoursUsed": str(count if item.hourly else 0),
    }
