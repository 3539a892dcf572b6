"""What is billed, from the account's billing items: the list, which lags, and each open item by its id, which does not."""

from __future__ import annotations

import math
from calendar import monthrange
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from providers.rental import owner_mark
from providers.rental.receipt import Charge
from providers.softlayer.calls import Api
from providers.softlayer.prices import dollars, per_hour, per_month, whole

WORKERS = 16
HOUR = timedelta(hours=1)
MONTHS_PER_YEAR = 12
CHARGE_MASK = (
    "mask[id,description,hostName,domainName,categoryCode,hourlyFlag,createDate,cancellationDate,"
    "cycleStartDate,hourlyRecurringFee,recurringFee,currentHourlyCharge,hoursUsed,orderItem[preset[keyName]],"
    "children[id,createDate,cycleStartDate,cancellationDate,hourlyRecurringFee,recurringFee,currentHourlyCharge]]"
)

Row = dict[str, Any]


def listed(api: Api, owner: owner_mark.Owner) -> list[Row]:
    """List the billing items of the guests that carry stack and mark, closed ones included."""
    ending = {"allTopLevelBillingItems": {"domainName": {"operation": f"$= {owner}.{owner_mark.ZONE}"}}}
    rows = api.read_all("Account", "getAllTopLevelBillingItems", mask=CHARGE_MASK, filter=ending)
    return [row for row in rows if owner_mark.owner_in_domain(row.get("domainName")) == owner]


def by_id(api: Api, item_ids: Iterable[str]) -> dict[str, Row]:
    """Read billing items one by one, as they are at this moment."""
    wanted = sorted(set(item_ids))
    with ThreadPoolExecutor(WORKERS) as pool:
        rows = pool.map(lambda item_id: api.find("Billing_Item", item_id, CHARGE_MASK), wanted)
        return {item_id: row for item_id, row in zip(wanted, rows, strict=True) if row}


def charge(row: Row, *, still_billed: bool, of: Row | None = None) -> Charge:
    """Read one billing item.

    Args:
        still_billed: what it is billed for still names it as its billing item.
        of: what it is billed for; the item of a volume or a VLAN names nothing.
    """
    cancelled = dated(row.get("cancellationDate"))
    # The account's clock need not be ours: a guest that still has its billing item says that its end lies ahead, and an
    # hourly item ends at once. Only monthly items are compared with our clock.
    ahead = still_billed or (cancelled is not None and not row.get("hourlyFlag") and cancelled > datetime.now(UTC))
    return Charge(
        id=str(row["id"]),
        description=_described(row),
        host=str(row.get("hostName") or _named(of or {})),
        category=str(row.get("categoryCode") or ""),
        opened=dated(row.get("createDate")) or datetime.now(UTC),
        closed=None if ahead else cancelled,
        ends=cancelled if ahead else None,
        hourly=bool(row.get("hourlyFlag")),
        per_hour=per_hour(row),
        per_month=per_month(row),
        # The account counts what hours have cost; a month is charged in full when it begins.
        so_far=_of_hours(row) if row.get("hourlyFlag") else per_month(row) * _months_begun(row),
        currency="USD",
    )


def _of_hours(row: Row) -> Decimal:
    """Add up the hours of the account's running billing period, which the account counts, and those of the ones before.

    Source: SoftLayer_Billing_Item's reference, by which `hoursUsed` counts "this billing period", and people's items, whose
    `cycleStartDate` is the last billing day. Parts that were replaced in an earlier period are in no list any more.
    """
    fee, children = "hourlyRecurringFee", row.get("children") or []
    below = sum((dollars(child.get(fee)) * _hours_before({**row, **child}) for child in children), Decimal(0))
    own = whole(row, fee) - sum((dollars(child.get(fee)) for child in children), Decimal(0))
    return whole(row, "currentHourlyCharge") + own * _hours_before(row) + below


def _hours_before(row: Row) -> int:
    """Count the started hours before the billing period; that of a new item begins minutes after it, and no other went before."""
    opened, begun = dated(row.get("createDate")), dated(row.get("cycleStartDate"))
    before = begun - opened if opened and begun else timedelta(0)
    return math.ceil(before / HOUR) if before >= HOUR else 0


def _months_begun(row: Row) -> int:
    """Count the months of an item up to its end, or to now; the first has begun with it."""
    opened = dated(row.get("createDate")) or datetime.now(UTC)
    end = min(dated(row.get("cancellationDate")) or datetime.now(UTC), datetime.now(UTC)).astimezone(opened.tzinfo)
    months = (end.year - opened.year) * MONTHS_PER_YEAR + end.month - opened.month
    anniversary = min(opened.day, monthrange(end.year, end.month)[1])
    is_begun = (end.day, end.time()) > (anniversary, opened.time())
    return max(months + is_begun, 1)


def _named(thing: Row) -> str:
    return str(thing.get("hostname") or thing.get("username") or thing.get("name") or "")


def dated(text: Any) -> datetime | None:
    """Read a date of the API."""
    return datetime.fromisoformat(str(text)) if text else None


def _described(row: Row) -> str:
    """Say what it is: a guest's item bears the name of its cores, which tells nobody that it stands for the GPUs as well."""
    flavor = ((row.get("orderItem") or {}).get("preset") or {}).get("keyName")
    return f"{flavor}, disks and port" if flavor else str(row.get("description") or "")
