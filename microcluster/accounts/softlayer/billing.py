"""Price of an order, and the orders and bills of the account: from lists, which lag, and from each order and item by its id."""

import math
from calendar import monthrange
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any

from microcluster.accounts.shared import receipt
from microcluster.accounts.shared.account import OrderStatus, Quote, Resource
from microcluster.accounts.shared.api_calls import at, at_once, text_at
from microcluster.accounts.shared.errors import CallError, ProviderError
from microcluster.accounts.shared.receipt import Charge
from microcluster.accounts.softlayer.api import Api
from microcluster.accounts.softlayer.errors import ApiError
from microcluster.accounts.softlayer.specs import GuestSpec, LedgerSpec, guest_template, lost_of, where_else
from microcluster.core.home import ZONE, Owner, owner_in_domain, owner_in_notes

ACCOUNT_PRICE = "the account's answer to verifyOrder"
OF_A_GUEST = "guest_core"
"""The category of a guest's own item, which stands for all that is billed with it."""
HOUR = timedelta(hours=1)
MONTHS_PER_YEAR = 12
HOURS_OF_A_MONTH = 730
PART_MASK = "[id,createDate,cycleStartDate,cancellationDate,hourlyRecurringFee,recurringFee,currentHourlyCharge]"
CHARGE_MASK = (
    "mask[id,description,hostName,domainName,notes,categoryCode,hourlyFlag,createDate,cancellationDate,"
    "cycleStartDate,hourlyRecurringFee,recurringFee,currentHourlyCharge,hoursUsed,orderItem[preset[keyName]],"
    f"children{PART_MASK},activeAssociatedGuestDiskBillingItems{PART_MASK}]"
)

Row = Mapping[str, Any]
STATUS_MASK = "mask[id,status]"
ORDER_MASK = "mask[id,status,createDate,items[hostName,domainName]]"
BILL_MASK = "mask[id,domainName,hostName,cancellationDate,orderItem[order[id]]]"
REFUSED = frozenset({"CANCELLED", "CANCELED", "REFUSED", "DENIED", "REJECTED"})
"""Statuses of orders that ended without a machine.

The vendor lists its statuses only to an account (SoftLayer_Billing_Order::getOrderStatuses). Known are PENDING_APPROVAL,
PENDING_AUTO_APPROVAL, APPROVED, and COMPLETED, which the official client's answers for SoftLayer_Billing_Order have
(softlayer-python, SoftLayer/fixtures). Any status that is not listed here stands: the machine may be there and billed.
"""
CLOCKS_DIFFER_BY = timedelta(hours=1)
"""An order that the account dates so long before it was sent may be the one: of its clock only its answers are known."""


def verify(api: Any, planned: Sequence[GuestSpec]) -> dict[str, Any]:
    """Ask the account whether it would accept the order of all these equal guests, and for how much."""
    template = guest_template(planned[0], "")
    del template["userData"]
    container = api.read("Virtual_Guest", "generateOrderTemplate", template)
    described = [{"hostname": spec.hostname, "domain": spec.domain, **lost_of(template)} for spec in planned]
    whole = {**container, "quantity": len(planned), "useHourlyPricing": True, "virtualGuests": described}
    return api.read("Product_Order", "verifyOrder", whole)


def quote(api: Any, spec: LedgerSpec, router: str | None = None, count: int = 1) -> Quote:
    """Let the account verify the order of ``count`` guests, and say what all guests of the stack cost.

    Raises:
        ProviderError: the account would refuse it.
    """
    planned = spec.planned(router or spec.backend_router_id, count)
    try:
        answer = verify(api, planned)
    except CallError as error:
        advice = where_else(spec.stack, planned[0], error)
        raise ProviderError(
            f"verifying the order of {count} x {spec.flavor} in {spec.datacenter}: {error.text} ({error.code}). "
            f"Nothing was ordered. {advice or 'Correct the stack file, or choose another datacenter or flavor.'}"
        ) from error

    def of_all(unit: str) -> Decimal:
        asked = answer.get(f"postTaxRecurring{unit}") or answer.get(f"preTaxRecurring{unit}")
        return dollars(asked) * spec.nodes / count

    monthly = of_all("Monthly")
    more = f", and {monthly.normalize():f} a month for what it bills by the month" if monthly else ""
    currency = str(answer.get("currencyShortName") or "USD")
    if currency != "USD":  # Everything else is in dollars, and nobody tells the rate between the two.
        return Quote(None, f"{ACCOUNT_PRICE} is in {currency}")
    return Quote(of_all("Hourly").normalize() or None, f"{ACCOUNT_PRICE}{more}")


def charges(account: Any, owner: Owner, known_guests: Iterable[str] = (), *, exact: bool = True) -> tuple[Charge, ...]:
    """List past and running charges of this stack and mark, oldest first.

    Args:
        known_guests: ids that the journal or a state knows; the lists may not show them yet.
        exact: as it is at this moment: the lists lag behind orders and cancellations, so that whatever may be open is asked for
            by its id. Else from the lists alone: three calls, and up to two minutes behind.
    """
    guests = _guests_now(account, owner, known_guests) if exact else account.guest_list.under(owner)
    rows = {str(row["id"]): row for row in listed(account.api, owner)}
    running = {str(each["billingItem"]["id"]) for each in guests if each.get("billingItem")}
    if exact:
        doubtful = {item for item, row in rows.items() if not row.get("cancellationDate")} | running
        newest = _read_each(partial(account.api.find, "Billing_Item", mask=CHARGE_MASK), doubtful)
        rows |= {str(row["id"]): row for row in newest}
    found = [charge(row, still_billed=item in running) for item, row in rows.items()]
    return tuple(sorted(found, key=lambda each: (each.opened, each.host)))


def other_items(api: Api) -> list[Row]:
    """List the open billing items with any mark that are no guest's: no stack declares what is behind them."""
    return [row for row in _marked(api) if row.get("categoryCode") != OF_A_GUEST and not row.get("cancellationDate")]


def as_resource(row: Row) -> Resource:
    """Read an open billing item of something that we never order: a person cancels it."""
    item_id = str(row["id"])
    return Resource(
        "item",
        item_id,
        str(row.get("hostName") or _described(row)),
        _owner(row),
        what="billing item",
        is_billed=True,
        since=dated(row.get("createDate")),
        per_hour=per_hour(row),
        price=rate(row),
        cancel_by_hand=f"slcli call-api Billing_Item cancelService --id {item_id}",
    )


def _guests_now(account: Any, owner: Owner, known: Iterable[str]) -> list[dict[str, Any]]:
    """Read each guest that may be billed by its id, and keep only this stack's."""
    listed = {str(each["id"]) for each in account.guest_list.under(owner) if each.get("billingItem")}

    def read(guest_id: str) -> Row | None:
        try:
            return account.guest(guest_id, owner)
        except ApiError as error:
            if not error.is_unready:
                raise
            return None  # Too fresh to be shown; whoever ordered it has it in the journal.

    found = _read_each(read, {*listed, *known})
    return [guest for guest in found if is_under(guest, owner)]


def _read_each(read: Callable[[str], Row | None], ids: Iterable[str]) -> list[Row]:
    """Read things one by one, as they are at this moment; what is not shown is left out."""
    return [row for row in at_once(read, sorted(set(ids))) if row]


def listed(api: Api, owner: Owner) -> list[Row]:
    """List the billing items that carry stack and mark, closed ones included."""
    return [row for row in _marked(api, f"$= {owner.domain}", f"^= {owner.notes}") if _owner(row) == owner]


def _marked(api: Api, domain: str = f"$= .{ZONE}", notes: str = f"^= {ZONE} ") -> list[Row]:
    rows: dict[str, Row] = {}
    for member, operation in (("domainName", domain), ("notes", notes)):
        tree = {"allTopLevelBillingItems": {member: {"operation": operation}}}
        found = api.read_all("Account", "getAllTopLevelBillingItems", mask=CHARGE_MASK, filter=tree)
        rows |= {str(row["id"]): row for row in found}
    return list(rows.values())


def _owner(row: Row) -> Owner | None:
    return owner_in_domain(row.get("domainName")) or owner_in_notes(row.get("notes"))


def charge(row: Row, *, still_billed: bool) -> Charge:
    """Read one billing item.

    Args:
        still_billed: the guest that it is billed for still names it as its billing item.
    """
    cancelled = dated(row.get("cancellationDate"))
    # The account's clock need not be ours: a guest that still has its billing item says that its end lies ahead, and an
    # hourly item ends at once. Only monthly items are compared with our clock.
    ahead = still_billed or (cancelled is not None and not row.get("hourlyFlag") and cancelled > datetime.now(UTC))
    return Charge(
        id=str(row["id"]),
        description=_described(row),
        host=text_at(row, "hostName"),
        category=text_at(row, "categoryCode"),
        opened=dated(row.get("createDate")) or datetime.now(UTC),
        closed=None if ahead else cancelled,
        ends=cancelled if ahead else None,
        hourly=bool(row.get("hourlyFlag")),
        per_hour=per_hour(row),
        per_month=whole(row, "recurringFee"),
        # The account counts what hours have cost; a month is charged in full when it begins.
        so_far=_of_hours(row) if row.get("hourlyFlag") else whole(row, "recurringFee") * _months_begun(row),
        currency="USD",
    )


def _of_hours(row: Row) -> Decimal:
    """Add up the hours of the account's running billing period, which the account counts, and those of the ones before.

    Source: SoftLayer_Billing_Item's reference, by which `hoursUsed` counts "this billing period", and people's items, whose
    `cycleStartDate` is the last billing day. Parts that were replaced in an earlier period are in no list any more.
    """
    fee = "hourlyRecurringFee"
    parts = [*(row.get("children") or []), *_floating_disks(row)]
    own = {fee: whole(row, fee) - _sum(parts, fee)}
    before = sum(dollars(part.get(fee)) * _hours_before({**row, **part}) for part in [own, *parts])
    return whole(row, "currentHourlyCharge") + before


def _hours_before(row: Row) -> int:
    """Count the started hours before the billing period; that of a new item begins minutes after it, and no other went before."""
    opened, begun = dated(row.get("createDate")), dated(row.get("cycleStartDate"))
    before = begun - opened if opened and begun else timedelta(0)
    return math.ceil(before / HOUR) if before >= HOUR else 0


def _months_begun(row: Row) -> int:
    """Count the months of an item, in the account's own zone, up to its end or to now; the first has begun with it."""
    opened = datetime.fromisoformat(str(row.get("createDate") or datetime.now(UTC)))
    end = min(dated(row.get("cancellationDate")) or datetime.now(UTC), datetime.now(UTC)).astimezone(opened.tzinfo)
    months = (end.year - opened.year) * MONTHS_PER_YEAR + end.month - opened.month
    anniversary = min(opened.day, monthrange(end.year, end.month)[1])
    is_begun = (end.day, end.time()) > (anniversary, opened.time())
    return max(months + is_begun, 1)


def dated(text: Any) -> datetime | None:
    """Read a date of the API, which has the account's own zone, in UTC: sentences say UTC."""
    return datetime.fromisoformat(str(text)).astimezone(UTC) if text else None


def _described(row: Row) -> str:
    """Describe a billing item: a guest's bears the name of its cores and hides that it stands for the GPUs as well."""
    flavor = at(row, "orderItem.preset.keyName")
    return f"{flavor}, disks and port" if flavor else text_at(row, "description")


def per_hour(item: Row) -> Decimal:
    """Add up what a billing item and its children cost an hour; a monthly one has no price by the hour, but costs as well."""
    if item.get("hourlyFlag") is False:
        return (whole(item, "recurringFee") / HOURS_OF_A_MONTH).quantize(Decimal("0.0001"))
    return whole(item, "hourlyRecurringFee")


def rate(item: Row) -> str:
    """Say the price of a billing item by the unit in which it is billed."""
    is_hourly = bool(item.get("hourlyFlag"))
    return receipt.rate(per_hour(item) if is_hourly else whole(item, "recurringFee"), "USD", hourly=is_hourly)


def whole(item: Row, amount: str) -> Decimal:
    """Read an amount of an item with everything below it.

    A top-level item speaks for its children too. One that is smaller than their sum certainly does not, and is added to it.
    Nor does it speak for a disk that is none of its children.
    """
    own, below = dollars(item.get(amount)), _sum(item.get("children") or [], amount)
    if own < below:
        own += below
    return own + _sum(_floating_disks(item), amount)


def _sum(items: Iterable[Row], amount: str) -> Decimal:
    return sum((dollars(each.get(amount)) for each in items), Decimal(0))


def _floating_disks(item: Row) -> list[Row]:
    """List the disks of a guest's item that are not among its children.

    The vendor has both relations, and says of the associated items that they need not be children (the reference of
    SoftLayer_Billing_Item, activeAssociatedChildren).
    """
    children = {child.get("id") for child in item.get("children") or []}
    return [disk for disk in item.get("activeAssociatedGuestDiskBillingItems") or [] if disk.get("id") not in children]


def dollars(value: Any) -> Decimal:
    """Read an amount of the API; nothing is no money."""
    return Decimal(str(value)) if value not in (None, "") else Decimal(0)


def as_status(order: Row, shown: Collection[str] = ()) -> OrderStatus:
    """Read an order as the kernel sees it.

    Args:
        shown: the host names of the guests that the account shows.
    """
    status = _status(order)
    # The parts of an order may bear no name of their own.
    names = tuple(str(item["hostName"]) for item in order.get("items") or [] if item.get("hostName"))
    return OrderStatus(
        str(order["id"]),
        f"its order {order['id']} {f'is {status}' if status else 'cannot be read'}",
        # PENDING_APPROVAL, PENDING_AUTO_APPROVAL and the like.
        is_waiting="PENDING" in status,
        is_refused=is_refused(order),
        hostnames=names,
        is_shown=set(names) <= set(shown),
    )


def is_refused(order: Row) -> bool:
    """Tell whether it was certainly refused or withdrawn."""
    return _status(order) in REFUSED


def is_over(order: Row, items: Sequence[Row]) -> bool:
    """Tell whether all that an order made was cancelled: its billing items are listed, and each has its end."""
    its = [each for each in items if str(order_of(each).get("id")) == str(order["id"])]
    return bool(its) and all(each.get("cancellationDate") for each in its)


def may_be_of(order: Row, hostname: str, since: datetime) -> bool:
    """Tell whether something of this host name is in the order, and whether it was placed since then."""
    placed = dated(order.get("createDate")) or since
    is_named = any(item.get("hostName") == hostname for item in order.get("items") or [])
    return is_named and placed >= since - CLOCKS_DIFFER_BY


def open_without_guest(items: Sequence[Row], listed: Sequence[Row]) -> list[str]:
    """Return the open billing items that no listed guest names as its own.

    SoftLayer_Billing_Item names no guest (only its subtype for guests has ``resourceTableId``), but a guest names its item.
    """
    claimed = {str(at(guest, "billingItem.id")) for guest in listed}
    return [str(each["id"]) for each in items if not each.get("cancellationDate") and str(each["id"]) not in claimed]


def is_of(order: Row, owner: Owner) -> bool:
    """Tell whether an order has something of this stack."""
    return any(is_under(item, owner) for item in order.get("items") or [])


def is_under(row: Row, owner: Owner | None) -> bool:
    """Tell whether a guest or a billing item is of this stack."""
    return owner_in_domain(row.get("domainName") or row.get("domain")) == owner


def order_of(item: Row) -> Row:
    """Return the order that a billing item came from, as far as it names one."""
    return at(item, "orderItem.order") or {}


def _status(order: Row) -> str:
    return text_at(order, "status").upper()
