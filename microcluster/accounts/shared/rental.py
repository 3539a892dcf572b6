"""A rental: what one mark held without a gap, as its account billed it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from microcluster.accounts.shared.account import Terms
from microcluster.accounts.shared.receipt import Charge
from microcluster.core.catalog.billing_rules import DOLLARS
from microcluster.core.home import Owner

FOR_EVER = datetime.max.replace(tzinfo=UTC)
CLOCKS_AGREE_S = 120
"""Two clocks that differ by less may both be right."""
SAME_RENTAL_S = 3600
"""A rental's network and drive may be ordered so long before its first machine; another one begins only after a longer gap."""


@dataclass(frozen=True)
class Rental:
    """Charges that belong together, as their account billed them at ``read_at``.

    Attributes:
        is_coming: something was ordered that is not billed yet.
        id: its name, which no other rental has; empty where the account does not say when it began.
        since: what was opened before then, and is still open, is left of another rental: it goes on costing, and is not its beginning.
    """

    read_at: datetime
    rows: tuple[Charge, ...] = ()
    is_coming: bool = False
    id: str = ""
    since: datetime | None = None

    @property
    def open(self) -> list[Charge]:
        """Open charges that end with the rental."""
        return [row for row in self.rows if row.is_open and not row.is_kept]

    @property
    def kept(self) -> list[Charge]:
        """Open charges that stay after it, because a person wants that."""
        return [row for row in self.rows if row.is_open and row.is_kept]

    @property
    def began(self) -> datetime | None:
        """Opening of its first charge; what is kept may be older."""
        opened = [row.opened for row in self.rows if not row.is_kept]
        own = [moment for moment in opened if self.since is None or moment >= self.since]
        return min(own or opened, default=None)

    @property
    def currency(self) -> str:
        """Currency of all charges; one account has only one."""
        return self.rows[0].currency if self.rows else DOLLARS

    @property
    def per_hour(self) -> Decimal:
        """Price of an hour, without what is kept."""
        return sum((row.per_hour for row in self.open), Decimal(0))

    @property
    def billed_per_hour(self) -> Decimal:
        """Price of an hour, with what is kept."""
        return sum((row.per_hour for row in self.rows if row.is_open), Decimal(0))

    @property
    def cost(self) -> Decimal:
        return sum((row.so_far for row in self.rows), Decimal(0))

    @property
    def spent(self) -> Decimal:
        """Cost since it began."""
        began = self.began
        if began is None:
            return Decimal(0)
        before = (row.price.cost(row.opened, began) for row in self.rows if row.opened < began)
        return self.cost - sum(before, Decimal(0))

    def goes_on_from(self, before: "Rental") -> bool:
        """Whether it is the same; one without a name, of a version before names, is known by its beginning."""
        return self.id == before.id if self.id and before.id else self.began == before.began

    def spent_at(self, moment: datetime) -> Decimal:
        """Return what is spent if everything goes on until ``moment``; a started hour counts whole."""
        if self.currency != DOLLARS:
            return self.spent + self.per_hour * hours(moment - self.read_at)
        more = (row.price.cost(row.opened, moment) - row.price.cost(row.opened, self.read_at) for row in self.open)
        return self.spent + sum(more, Decimal(0))


def rentals(charges: Iterable[Charge], read_at: datetime, names: Mapping[str, str] = {}) -> list[Rental]:  # noqa: B006
    """Split the charges by the rental that each belongs to, oldest first; open charges are always in the last rental.

    Those without a name, of a version before names, are split where the mark held nothing for a while. What is kept between two
    rentals does not make one of them; it stands at the end of the last one.

    Args:
        names: the id of the rental by the id of the charge, as far as that is known.
    """
    found: list[list[Charge]] = []
    held_until, name = FOR_EVER, ""
    # What is open with a name may be older than rentals that have ended since.
    for row in sorted(charges, key=lambda row: (row.is_kept, row.is_open and row.id in names, row.opened)):
        if row.is_kept and found:
            found[-1].append(row)
            continue
        closed, before = row.closed or FOR_EVER, name
        name = names.get(row.id, "")
        if not found or name != before or (not name and row.opened > held_until):
            found.append([])
            held_until = closed
        found[-1].append(row)
        held_until = max(held_until, closed)
    return [Rental(read_at, tuple(rows), id=names.get(rows[0].id, "")) for rows in found]


def named_rental(
    charges: Iterable[Charge], read_at: datetime, terms: Terms | None, account_id: str, owner: Owner
) -> Rental:
    """Return the rental that the account holds terms of; without any, the newest that held something without a gap."""
    charges = tuple(charges)
    if terms is None:
        last = {row.id for row in last_rental(charges, read_at).rows}
        # All starts of a queue's job count, also those before a gap.
        return Rental(read_at, tuple(row for row in charges if row.id in last))
    began = terms.first_order - CLOCKS_AGREE_S
    rows = (row for row in charges if row.is_open or row.opened.timestamp() >= began)
    since = datetime.fromtimestamp(terms.first_order - SAME_RENTAL_S, UTC)
    return Rental(read_at, tuple(rows), id=terms.rental_id(account_id, owner), since=since)


def last_rental(charges: Iterable[Charge], read_at: datetime) -> Rental:
    """Return the newest rental; an empty one where nothing was ever rented."""
    found = rentals(charges, read_at)
    return found[-1] if found else Rental(read_at)


def hours(span: timedelta) -> Decimal:
    """Return exact hours."""
    return Decimal(str(span.total_seconds())) / 3600
