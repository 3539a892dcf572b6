"""What things cost: started hours times the fee of each part, until the part or its guest is cancelled."""

from __future__ import annotations

import math
from decimal import Decimal

from .account import Account
from .catalogue import Price
from .price_list import load_catalogue
from .records import BillingItem, Fee

HOUR_S = 3600.0
HOURS_OF_A_MONTH = 730
CENT = Decimal("0.01")


def started_hours(opened: float, until: float) -> int:
    """Hours that are billed between two moments: each started one counts, the first from the first second."""
    return max(1, math.ceil(round(until - opened, 3) / HOUR_S))


def fee_so_far(fee: Fee, item: BillingItem, now: float) -> Decimal:
    """The dollars of one part up to now."""
    ends = [moment for moment in (fee.closed, item.closed) if moment is not None]
    hours = started_hours(fee.opened, min([now, *ends]))
    if item.hourly:
        return Decimal(fee.hourly) * hours
    # A guest that is not billed by the hour pays whole months, also when it is cancelled after a day.
    months = math.ceil(hours / HOURS_OF_A_MONTH)
    return load_catalogue().monthly(Decimal(fee.hourly)) * months


def item_so_far(item: BillingItem, now: float) -> Decimal:
    """The dollars of a billing item with all its parts up to now, or up to its end."""
    return sum((fee_so_far(fee, item, now) for fee in item.fees), Decimal())


def hours_used(item: BillingItem, now: float) -> int:
    """The started hours of a billing item."""
    return started_hours(item.opened, now if item.closed is None else item.closed)


def per_hour(item: BillingItem) -> Decimal:
    """The dollars per hour of the parts that are open; of a closed item, those that were open to its end."""
    return sum((Decimal(fee.hourly) for fee in item.fees if fee.closed in (None, item.closed)), Decimal())


def bill(account: Account) -> Decimal:
    """What the account has to pay up to now, for everything it ever had, in cents."""
    items = account.store.billing_items.values()
    return sum((item_so_far(item, account.now) for item in items), Decimal()).quantize(CENT)


def open_fee(account: Account, price: Price) -> Fee:
    """Begin to bill one price."""
    return Fee(account.next_id(), price.category.code, price.description, str(price.hourly), account.now)


def replace_fee(account: Account, item: BillingItem, price: Price) -> None:
    """Bill this price from now on, and no longer what stood under its category."""
    for fee in item.fees:
        if fee.category == price.category.code and fee.closed is None:
            fee.closed = account.now
    item.fees.append(open_fee(account, price))


def close(account: Account, item: BillingItem) -> None:
    """End a charge now; the billing item stays readable."""
    moment = account.now  # The clock runs on between two looks; what ends together ends at the same moment.
    item.closed = moment
    for fee in item.fees:
        fee.closed = fee.closed or moment
