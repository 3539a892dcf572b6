"""Charges of a rental, their sum, and whether any is open."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal

from microcluster.core.catalog.billing_rules import Rate


@dataclass(frozen=True)
class Charge:
    """One top-level billing item with all that is billed under it."""

    id: str
    description: str
    host: str
    category: str
    opened: datetime
    closed: datetime | None
    ends: datetime | None
    """Date of a cancellation in the future; until then it is billed."""
    hourly: bool
    per_hour: Decimal
    per_month: Decimal
    """Price of an item that is not billed by the hour."""
    so_far: Decimal
    currency: str
    is_kept: bool = False
    """Whether it is open because a person wants it to stay."""
    is_part: bool = False
    """Whether it is billed with a machine that has a charge of its own."""
    by_month: bool = False
    """Whether each calendar month is billed alone."""

    @property
    def is_open(self) -> bool:
        """Tell whether it still costs money."""
        return self.closed is None

    @property
    def price(self) -> Rate:
        """Price of the charge's started hours."""
        return Rate(self.per_hour, None if self.hourly else self.per_month, self.by_month)

    @property
    def rate(self) -> str:
        """Say the price by the unit in which it is billed."""
        return rate(self.per_hour if self.hourly else self.per_month, self.currency, hourly=self.hourly)


@dataclass(frozen=True)
class Receipt:
    """All charges of a rental."""

    rows: tuple[Charge, ...]
    total: Decimal
    open_count: int
    """Number of open charges, without what is kept."""


def rate(price: Decimal, currency: str, *, hourly: bool) -> str:
    """Say a price by the unit in which it is billed."""
    return f"{price.normalize():f} {currency} an hour" if hourly else f"{price:.2f} {currency} a month"


def receipt(charges: Iterable[Charge]) -> Receipt:
    """Add the charges up."""
    rows = tuple(charges)
    return Receipt(
        rows, sum((row.so_far for row in rows), Decimal(0)), sum(row.is_open and not row.is_kept for row in rows)
    )


def as_lines(found: Receipt, owner_mark: str) -> str:
    """Write the receipt as lines for a person."""
    rows = [
        f"  {row.host or '-':<10} {row.description}: {when(row.opened)} to "
        f"{'now' if row.closed is None else when(row.closed)} UTC, {row.so_far:.2f} {row.currency}"
        f"{f', kept at up to {row.per_month:.2f} {row.currency} a month' if row.is_kept else ''}"
        for row in found.rows
    ]
    last = f"open billing items with mark {owner_mark}: {found.open_count}; rented for {found.total:.2f} in all"
    return "\n".join(["receipt:", *rows, last])


def when(moment: datetime) -> str:
    """Return a moment in UTC, to the second."""
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S}"
