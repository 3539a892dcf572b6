"""What a billing item costs: added up, and in words."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from providers.rental import receipt

Item = Mapping[str, Any]


HOURS_OF_A_MONTH = 730


def per_hour(item: Item) -> Decimal:
    """Add up what a billing item and its children cost an hour; a monthly one has no price by the hour, but costs as well."""
    if item.get("hourlyFlag") is False:
        return (per_month(item) / HOURS_OF_A_MONTH).quantize(Decimal("0.0001"))
    return whole(item, "hourlyRecurringFee")


def per_month(item: Item) -> Decimal:
    """Add up what a monthly billing item and its children cost a month."""
    return whole(item, "recurringFee")


def rate(item: Item) -> str:
    """Say the price of a billing item by the unit in which it is billed."""
    is_hourly = bool(item.get("hourlyFlag"))
    return receipt.rate(per_hour(item) if is_hourly else per_month(item), "USD", hourly=is_hourly)


def whole(item: Item, amount: str) -> Decimal:
    """Read an amount of an item with everything below it.

    A top-level item speaks for its children too. One that is smaller than their sum certainly does not, and is added to it.
    """
    own = dollars(item.get(amount))
    below = sum((dollars(child.get(amount)) for child in item.get("children") or []), Decimal(0))
    return own if own >= below else own + below


def dollars(value: Any) -> Decimal:
    """Read an amount of the API; nothing is no money."""
    return Decimal(str(value)) if value not in (None, "") else Decimal(0)
