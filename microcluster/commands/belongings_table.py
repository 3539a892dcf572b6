"""What an account holds, as a table for a person."""

from collections.abc import Iterable
from datetime import UTC, datetime
from decimal import Decimal

from core.plain_text import duration
from microcluster.commands.screen import show_table
from providers.rental.backend import Belonging

COLUMNS = (("id", "left"), ("name", "left"), ("owner", "left"), ("since", "left"), ("per hour", "right"), ("", "left"))


def show(things: Iterable[Belonging], title: str, remarks: dict[str, str]) -> None:
    """Print one line for each thing; ``remarks`` holds remarks on some, by their label."""
    in_order = sorted(things, key=lambda thing: (str(thing.owner), thing.label))
    show_table(COLUMNS, [_row(each, remarks) for each in in_order], title, width=150)


def per_hour(things: Iterable[Belonging]) -> str:
    """Return the sum of their hourly prices."""
    return f"{sum((each.per_hour for each in things), Decimal(0)).normalize():f} USD an hour"


def _row(each: Belonging, remarks: dict[str, str]) -> tuple[str, ...]:
    price = f"{each.per_hour.normalize():f}" if each.is_billed else ""
    more = "; ".join(filter(None, (remarks.get(each.label), each.cancel_by_hand)))
    return each.label, each.name, str(each.owner), age(each.since), price, more


def age(since: datetime | None, now: datetime | None = None) -> str:
    """Return when something was made, and its age."""
    if since is None:
        return ""
    seconds = max(((now or datetime.now(UTC)) - since).total_seconds(), 0)
    return f"{since.astimezone(UTC):%Y-%m-%d %H:%M} UTC ({duration(seconds)})"
