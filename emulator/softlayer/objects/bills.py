"""Billing items, orders and users as the API shows them.

The fees of a top-level item are those of the whole: its ``hourlyRecurringFee`` and ``currentHourlyCharge`` contain those of its children.
"""

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from emulator.softlayer import billing, guests, invoices, users
from emulator.softlayer.account import USER_ID, Account
from emulator.softlayer.catalog import DISK_CATEGORIES
from emulator.softlayer.dates import iso
from emulator.softlayer.objects import offered
from emulator.softlayer.records import BillingItem, Fee, Guest, Order
from emulator.softlayer.users import User
from emulator.softlayer.views import View


def user(account: Account, who: User | None = None) -> View:
    """A user of the account; by default the main one."""
    who = who or users.of(account.settings, None)
    name = who.name
    email = f"{name}@example.com"
    return View(
        {"id": USER_ID, "username": name, "displayName": name, "firstName": name, "lastName": "", "email": email}
        | {"isMasterUserFlag": False},
        {
            "hasFullVirtualGuestAccessFlag": lambda: users.ALL_GUESTS in who.permissions,
            "permissions": lambda: [{"keyName": each} for each in sorted(who.permissions)],
        },
    )


def order(account: Account, record: Order) -> View:
    """An order with its items."""
    return View(
        {
            "id": record.id,
            "accountId": account.id,
            "createDate": iso(record.created),
            "modifyDate": iso(record.created),
            "status": guests.status_of(account, record),
            "userRecordId": USER_ID,
        },
        {"items": lambda: order_items(record), "userRecord": lambda: user(account)},
    )


def order_items(record: Order) -> list[dict[str, Any]]:
    """The lines of an order, each with the guest it was ordered for."""
    return [
        {
            "id": record.id * 100 + number,
            "description": line.description,
            "categoryCode": line.category,
            "hostName": line.hostname,
            "domainName": line.domain,
        }
        for number, line in enumerate(record.lines)
    ]


def billed(account: Account, item: BillingItem) -> View | None:
    """The billing item of a thing, as long as it is billed; one that is pending cancellation is."""
    return item_view(account, item) if item.closed is None else None


def of_guest(account: Account, record: Guest) -> View | None:
    """The billing item of a guest, which a cancelled one does not have any more."""
    item = account.store.billing_items.read(record.billing_item_id)
    return billed(account, item) if item else None


def item_view(account: Account, item: BillingItem) -> View:
    """A top-level billing item."""
    top = next(fee for fee in reversed(item.fees) if fee.category == item.category)  # the part that names the whole
    begun = invoices.period_start(account, item)
    charge = sum((_charged(account, item, fee, begun) for fee in item.fees), Decimal())
    hours = billing.hours_used(item, account.now) - _hours_before(item.opened, begun)
    local = (
        _local(item, top)
        | _Fees(billing.per_hour(item), billing.per_month(item), charge).shown(item, hours)
        | {
            "id": item.id,
            "hostName": item.hostname,
            "domainName": item.domain,
            "createDate": iso(item.opened),
            "cycleStartDate": iso(begun),
            "cancellationDate": iso(item.ends if item.closed is None else item.closed),
            "notes": item.notes,
        }
    )

    def children(fees: list[Fee]) -> list[View]:
        return [child(account, item, fee) for fee in fees if fee is not top]

    is_open = [fee for fee in item.fees if fee.closed is None]
    relations = {
        "children": lambda: children(billing.to_the_end(item)),
        "activeChildren": lambda: children(is_open),
        "activeAssociatedGuestDiskBillingItems": lambda: children(
            [fee for fee in is_open if fee.category in DISK_CATEGORIES[1:]]
        ),
    }
    return View(local, _common_relations(account, item, top) | relations)


def child(account: Account, item: BillingItem, fee: Fee) -> View:
    """One part of an item."""
    end, begun = billing.ended(fee, item), invoices.period_start(account, item)
    hourly, charge = Decimal(fee.hourly), _charged(account, item, fee, begun)
    until = account.now if end is None else min(end, account.now)
    hours = billing.started_hours(fee.opened, until) - _hours_before(fee.opened, begun)
    local = (
        _local(item, fee)
        | _Fees(hourly, account.catalog.monthly(hourly), charge).shown(item, hours)
        | {
            "id": fee.id,
            "parentId": item.id,
            "createDate": iso(fee.opened),
            "cycleStartDate": iso(max(fee.opened, begun)),
            "cancellationDate": iso(end),
        }
    )
    none_below = dict.fromkeys(("children", "activeChildren"), list)
    parent = {"parent": lambda: item_view(account, item)}
    return View(local, _common_relations(account, item, fee) | none_below | parent)


@dataclass(frozen=True)
class _Fees:
    """Money as billing items have it: numbers, in dollars."""

    hourly: Decimal
    monthly: Decimal
    charged: Decimal

    def shown(self, item: BillingItem, hours: int) -> dict[str, Any]:
        """The properties of an item or of one part."""
        return {
            "hourlyRecurringFee": float(self.hourly if item.hourly else 0),
            "recurringFee": float(self.charged if item.hourly else self.monthly),
            "recurringMonths": 1,
            "setupFee": 0.0,
            "hoursUsed": str(hours if item.hourly else 0),
            "currentHourlyCharge": float(self.charged if item.hourly else 0),
        }


def _charged(account: Account, item: BillingItem, fee: Fee, begun: float) -> Decimal:
    """What a part has cost in the billing period that is shown; earlier periods are on their invoices."""
    before = billing.charged_for(fee, item, begun) if begun > fee.opened else Decimal()
    return billing.charged_for(fee, item, account.now) - before


def _hours_before(opened: float, begun: float) -> int:
    """The started hours that are on earlier invoices."""
    return billing.started_hours(opened, begun) if begun > opened else 0


def _local(item: BillingItem, fee: Fee) -> dict[str, Any]:
    return {
        "description": fee.description,
        "categoryCode": fee.category,
        "orderItemId": item.order_item_id,
    }


def _common_relations(account: Account, item: BillingItem, fee: Fee) -> dict[str, Any]:
    """Relations in SoftLayer's schema: a mask with these alone still shows the local properties."""
    flavor = account.catalog.flavor(item.flavor)
    order_item = View(
        {
            "id": item.order_item_id,
            "presetId": flavor.id if flavor else None,
            "description": flavor.description if flavor else fee.description,
        },
        {
            "order": lambda: order(account, account.store.orders[item.order_id]),
            "preset": lambda: offered.preset(account, flavor) if flavor else None,
        },
    )
    return {"hourlyFlag": lambda: item.hourly, "orderItem": lambda: order_item}
