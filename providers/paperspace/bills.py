"""What was and is billed, computed by the dated price list: the API shows rates and no bill.

What lives is dated by the account; of what has ended the journal knows what was ordered, and a machine's events its dates.
"""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from core.catalog import paperspace as catalog
from core.catalog.prices import Rate
from core.home import Owner
from providers.paperspace import views
from providers.paperspace.views import DRIVE, MACHINE, NETWORK
from providers.rental.account import Resource
from providers.rental.journal import Intent, Journal
from providers.rental.receipt import Charge

BY_LIST = f"by the price list of {catalog.AS_OF}"
FREE = Rate(Decimal(0), Decimal(0))

Life = tuple[datetime, datetime | None, datetime]
"""From when it is billed, until when, and what time it is by the account's clock."""


def charges(market: Any, owner: Owner, known: Iterable[str] = ()) -> tuple[Charge, ...]:
    """List what was and is billed under this stack and mark, oldest first.

    Args:
        market: a ``Paperspace``.
        known: machines that the list may not show yet.
    """
    living = [views.VIEWS[kind](row) for kind in (DRIVE, NETWORK) for row in market.under(kind, owner)]
    listed = {str(row["id"]) for row in market.under(MACHINE, owner)}
    rows = [market.api.find("/machines", each) for each in sorted({*listed, *known})]
    living += [found for row in rows if row and (found := views.machine(row)).owner == owner]
    now = datetime.now(UTC) - timedelta(seconds=market.clock_ahead_s)
    found = [each for resource in living for each in _of_living(resource, now)]
    found += _of_ended(market, owner, {each.id for each in living})
    return tuple(sorted(found, key=lambda each: (each.opened, each.host, each.id)))


def _of_living(found: Resource, now: datetime) -> list[Charge]:
    life = (found.since or now, None, now)
    if found.kind == MACHINE:
        shown = found.inputs
        return _machine(found.id, found.called, (shown["machineType"], shown["diskGb"], shown["publicIpType"]), life)
    size = found.inputs.get("sizeGb")
    return [_good(found.kind, found.id, found.called, size, life, is_kept=found.is_kept)]


def _of_ended(market: Any, owner: Owner, living: set[str]) -> list[Charge]:
    """Price what the journal knows to have been ordered and closed."""
    journal, account_id = Journal(owner.stack, owner.mark), market.whoami().account_id
    closed = {each["id"]: views.moment(each.get("at")) for each in journal.events() if each["event"] == "closed"}
    found = []
    made = [each for kind in (MACHINE, DRIVE, NETWORK) for each in journal.made(account_id, kind).items()]
    for object_id, intent in made:
        if object_id not in closed or object_id in living:
            continue
        now = datetime.now(UTC)
        life = (views.moment(intent.at) or now, closed[object_id] or now, now)
        if intent.kind == MACHINE:
            found += _ended_machine(market, object_id, intent, life)
        else:
            found.append(_good(intent.kind, object_id, intent.called, int(intent.sold or 0), life))
    return found


def _ended_machine(market: Any, machine_id: str, intent: Intent, life: Life) -> list[Charge]:
    events = market.events(machine_id)
    made, gone = views.of_name(events, "create") or {}, views.of_name(events, "deactivate") or {}
    opened = views.moment(made.get("dtCreated")) or life[0]
    closed = views.moment(gone.get("dtFinished") or gone.get("dtCreated")) or life[1]
    label, disk, address = [*intent.sold.split(), "", "0", "none"][:3]
    return _machine(machine_id, str(intent.hostname), (label, int(disk), address), (opened, closed, life[2]))


def _machine(machine_id: str, host: str, sold: tuple[str, int, str], life: Life) -> list[Charge]:
    label, disk_gb, address = sold
    kind, disk = catalog.MACHINE_TYPES.get(label), catalog.DISKS.get(disk_gb)
    found = [_charge(machine_id, label, (host, MACHINE), life, kind.rate if kind else Rate(Decimal(0)))]
    if disk:
        found.append(_charge(f"{machine_id}/disk", f"its disk of {disk_gb} GB", (host, "disk"), life, disk))
    if address != "none":
        where = (host, "address")
        found.append(_charge(f"{machine_id}/address", f"its {address} address", where, life, catalog.PUBLIC_IP))
    return found


def _good(kind: str, object_id: str, name: str, size_gb: int | None, life: Life, *, is_kept: bool = False) -> Charge:
    is_drive = kind == DRIVE
    what = f"drive of {size_gb} GB" if is_drive else "private network"
    rate = catalog.DRIVES.get(size_gb or 0, FREE) if is_drive else catalog.NETWORK
    return _charge(object_id, what, (name, kind), life, rate, is_kept=is_kept)


def _charge(
    charge_id: str, what: str, where: tuple[str, str], life: Life, rate: Rate, *, is_kept: bool = False
) -> Charge:
    (host, category), (opened, closed, now) = where, life
    return Charge(
        id=charge_id,
        description=f"{what} ({BY_LIST})",
        host=host,
        category=category,
        opened=opened,
        closed=closed,
        ends=None,
        hourly=rate.per_month is None,
        per_hour=rate.per_hour,
        per_month=rate.per_month or Decimal(0),
        so_far=rate.cost(opened, closed or now),
        currency=catalog.CURRENCY,
        is_kept=is_kept,
        is_part=category in ("disk", "address"),
        by_month=rate.by_month,
    )
