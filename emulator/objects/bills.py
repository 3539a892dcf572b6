"""Billing items and orders as the API shows them.

A top-level item speaks for the whole guest: its ``hourlyRecurringFee`` and ``currentHourlyCharge`` contain those of its children.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from .. import billing
from ..account import USER_ID, Account
from ..clock import iso
from ..records import BillingItem, Fee, Guest, Order
from ..views import View
from . import goods, guests, places

TOP_CATEGORY = "guest_core"


def of_guest(account: Account, record: Guest) -> View | None:
    """The billing item of a guest, which a cancelled one does not have any more."""
    item = account.store.billing_items[record.billing_item_id]
    return item_view(account, item) if item.closed is None else None


def item_view(account: Account, item: BillingItem) -> View:
    """A top-level billing item."""
    top = next(fee for fee in reversed(item.fees) if fee.category == TOP_CATEGORY)
    hourly = billing.per_hour(item)
    local = (
        _local(account, item, top.description, TOP_CATEGORY)
        | {
            "id": item.id,
            "description": top.description,
            "hostName": item.hostname,
            "domainName": item.domain,
            "createDate": iso(item.opened),
            "cycleStartDate": iso(item.opened),
            "cancellationDate": iso(item.closed),
            "notes": item.notes,
        }
        | _fees(account, item, hourly, billing.item_so_far(item, account.now), billing.hours_used(item, account.now))
    )
    children = [_child(account, item, fee) for fee in item.fees if fee is not top]
    # Relations in SoftLayer's schema: asking for them alone must not hide the local properties.
    total, hourly_flag = local.pop("nextInvoiceTotalRecurringAmount"), local.pop("hourlyFlag")
    place = account.catalogue.datacenter(item.datacenter)
    return View(
        local,
        {
            "children": lambda: children,
            "nextInvoiceChildren": lambda: children,
            "activeChildren": lambda: [child for child in children if child["cancellationDate"] is None],
            "nextInvoiceTotalRecurringAmount": lambda: total,
            "hourlyFlag": lambda: hourly_flag,
            "location": lambda: places.datacenter(place),
            "package": lambda: goods.package(account),
            "category": lambda: goods.category(account, TOP_CATEGORY),
            "orderItem": lambda: _order_item(account, item),
            "resourceTableId": lambda: item.thing_id,
            "virtualGuest": lambda: _guest(account, item),
        },
    )


def order(account: Account, record: Order) -> View:
    """An order with its items."""
    total = Decimal(record.total_hourly)
    amount = total if record.hourly else account.catalogue.monthly(total)
    return View(
        {
            "id": record.id,
            "createDate": iso(record.created),
            "modifyDate": iso(record.created),
            "status": record.status,
            "userRecordId": USER_ID,
        },
        {
            "orderTotalAmount": lambda: str(amount.quantize(billing.CENT)),
            "orderApprovalDate": lambda: iso(record.created),
            "items": lambda: [{"id": record.id * 100 + n, "description": line} for n, line in enumerate(record.lines)],
            "userRecord": lambda: user(account),
        },
    )


def user(account: Account) -> View:
    """The only user of the account."""
    name = account.settings.username
    email = f"{name}@example.com"
    return View(
        {"id": USER_ID, "username": name, "displayName": name, "firstName": name, "lastName": "", "email": email},
        {"userStatus": lambda: {"id": 1001, "keyName": "ACTIVE", "name": "Active"}},
    )


def _child(account: Account, item: BillingItem, fee: Fee) -> dict[str, Any]:
    ends = [moment for moment in (fee.closed, item.closed) if moment is not None]
    until = min([account.now, *ends])
    charge = billing.fee_so_far(fee, item, account.now)
    return (
        _local(account, item, fee.description, fee.category)
        | {
            "id": fee.id,
            "parentId": item.id,
            "createDate": iso(fee.opened),
            "cancellationDate": iso(min(ends) if ends else None),
            "amount": float(charge),
        }
        | _fees(account, item, Decimal(fee.hourly), charge, billing.started_hours(fee.opened, until))
    )


def _local(account: Account, item: BillingItem, description: str, category: str) -> dict[str, Any]:
    return {
        "description": description,
        "categoryCode": category,
        "hourlyFlag": item.hourly,
        "orderItemId": item.order_item_id,
        "currencyShortName": account.catalogue.currency,
    }


def _fees(account: Account, item: BillingItem, hourly: Decimal, charge: Decimal, hours: int) -> dict[str, Any]:
    """Money as billing items have it: numbers, in dollars."""
    monthly = float(account.catalogue.monthly(hourly))
    return {
        "hourlyRecurringFee": float(hourly),
        "recurringFee": float(charge) if item.hourly else monthly,
        "recurringMonths": 1,
        "setupFee": 0.0,
        "hoursUsed": str(hours),
        "currentHourlyCharge": float(charge),
        "nextInvoiceTotalRecurringAmount": float(charge) if item.hourly else monthly,
    }


def _order_item(account: Account, item: BillingItem) -> View:
    flavour = account.catalogue.flavour(item.flavour)
    return View(
        {"id": item.order_item_id, "presetId": flavour.id, "description": flavour.description},
        {
            "order": lambda: order(account, account.store.orders[item.order_id]),
            "preset": lambda: goods.preset(account, flavour),
            "package": lambda: goods.package(account),
        },
    )


def _guest(account: Account, item: BillingItem) -> View | None:
    record = account.store.guests.get(item.thing_id)
    return guests.guest(account, record) if record else None
