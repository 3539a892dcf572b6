"""What was and is billed, computed by the dated price list: the API shows rates and no bill.

What lives is dated by the account; of what has ended the journal knows what was ordered, and a machine's events its dates.
"""

import math
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from core.catalog import paperspace as catalog
from core.catalog.paperspace import Rate
from providers.paperspace import machine_lookup, machine_view, names, private_network, shared_drive
from providers.paperspace.account import DRIVES, MACHINES, NETWORKS, Account
from providers.rental.journal import Intent, Journal
from providers.rental.owner_mark import Owner
from providers.rental.receipt import Charge

HOUR = timedelta(hours=1)
BY_LIST = f"by the price list of {catalog.AS_OF}"

Row = Mapping[str, Any]
Life = tuple[datetime, datetime | None]


def charges(account: Account, owner: Owner, known_ids: Iterable[str] = ()) -> tuple[Charge, ...]:
    """List what was and is billed under this stack and mark, oldest first.

    Args:
        known_ids: machines that the list may not show yet.
    """
    ended = _Ended(account, owner)
    found = [each for row in _machines(account, owner, known_ids) for each in _of_machine(row)]
    found += [each for machine_id, intent in ended.of(machine_view.KIND) for each in ended.machine(machine_id, intent)]
    drives, networks = account.under(DRIVES, owner), account.under(NETWORKS, owner)
    found += [_of_drive(row) for row in drives] + [_of_network(row) for row in networks]
    for kind, rows in ((shared_drive.KIND, drives), (private_network.KIND, networks)):
        living = {str(row["id"]) for row in rows}
        found += [ended.good(kind, each, intent) for each, intent in ended.of(kind) if each not in living]
    return tuple(sorted(found, key=lambda each: (each.opened, each.host, each.id)))


def _machines(account: Account, owner: Owner, known_ids: Iterable[str]) -> list[Row]:
    listed = {str(row["id"]) for row in account.under(MACHINES, owner)}
    rows = [account.api.find(MACHINES, each) for each in sorted({*listed, *known_ids})]
    return [row for row in rows if row and names.owner_of(row.get("name")) == owner]


def _of_machine(row: Row) -> list[Charge]:
    life = (machine_view.moment(row.get("dtCreated")) or datetime.now(UTC), None)
    host = machine_view.thing(row).name
    shown = machine_view.inputs(row)
    return _parts(str(row["id"]), host, (shown["machineType"], shown["diskGb"], shown["publicIpType"]), life)


def _parts(machine_id: str, host: str, sold: tuple[str, int, str], life: Life) -> list[Charge]:
    label, disk_gb, address = sold
    kind, disk = catalog.MACHINE_TYPES.get(label), catalog.DISKS.get(disk_gb)
    found = [_charge(machine_id, label, (host, "machine"), life, kind.per_hour if kind else Decimal(0))]
    if disk:
        found.append(_charge(f"{machine_id}/disk", f"its disk of {disk_gb} GB", (host, "disk"), life, disk))
    if address != "none":
        found.append(
            _charge(f"{machine_id}/address", f"its {address} address", (host, "address"), life, catalog.PUBLIC_IP)
        )
    return found


def _of_drive(row: Row) -> Charge:
    named, size = names.read(row.get("name")), shared_drive.size_gb(row)
    life = (machine_view.moment(row.get("dtCreated")) or datetime.now(UTC), None)
    rate = catalog.DRIVES.get(size, Rate(Decimal(0), Decimal(0)))
    what = f"drive of {size} GB"
    return _charge(str(row["id"]), what, (named.label, "drive"), life, rate, is_kept=named.is_kept)


def _of_network(row: Row) -> Charge:
    named = names.read(row.get("name"))
    life = (machine_view.moment(row.get("dtCreated")) or datetime.now(UTC), None)
    return _charge(
        str(row["id"]), "private network", (named.label, "network"), life, catalog.NETWORK, is_kept=named.is_kept
    )


class _Ended:
    """What the journal knows to have been ordered and closed."""

    def __init__(self, account: Account, owner: Owner) -> None:
        self._account, self._account_id = account, account.identity().account_id
        self._journal = Journal(owner.stack, owner.mark)
        self._closed = {
            event["id"]: machine_view.moment(event.get("at"))
            for event in self._journal.events()
            if event["event"] == "closed"
        }

    def of(self, kind: str) -> list[tuple[str, Intent]]:
        """List the ids of what has ended, with its intents."""
        made = self._journal.made(self._account_id, kind)
        return [(each, intent) for each, intent in made.items() if each in self._closed]

    def machine(self, machine_id: str, intent: Intent) -> list[Charge]:
        """Price a machine that has ended."""
        events = machine_lookup.events(self._account, machine_id)
        made, gone = machine_view.of_name(events, "create"), machine_view.of_name(events, "deactivate")
        opened = machine_view.moment(made and made.get("dtCreated")) or self._opened(intent)
        closed = machine_view.moment(gone and (gone.get("dtFinished") or gone.get("dtCreated")))
        label, disk, address = [*intent.sold.split(), "", "0", "none"][:3]
        life = (opened, closed or self._closed[machine_id] or datetime.now(UTC))
        return _parts(machine_id, str(intent.hostname), (label, int(disk), address), life)

    def good(self, kind: str, object_id: str, intent: Intent) -> Charge:
        """Price a drive or a network that has ended."""
        life = (self._opened(intent), self._closed[object_id] or datetime.now(UTC))
        if kind == private_network.KIND:
            return _charge(object_id, "private network", (intent.name, kind), life, catalog.NETWORK)
        size = int(intent.sold or 0)
        rate = catalog.DRIVES.get(size, Rate(Decimal(0), Decimal(0)))
        return _charge(object_id, f"drive of {size} GB", (intent.name, kind), life, rate)

    @staticmethod
    def _opened(intent: Intent) -> datetime:
        return machine_view.moment(intent.at) or datetime.now(UTC)


def _charge(
    charge_id: str, what: str, where: tuple[str, str], life: Life, price: Rate | Decimal, *, is_kept: bool = False
) -> Charge:
    (host, category), (opened, closed) = where, life
    rate = price if isinstance(price, Rate) else Rate(price, Decimal(0))
    hourly = not isinstance(price, Rate)
    return Charge(
        id=charge_id,
        description=f"{what} ({BY_LIST})",
        host=host,
        category=category,
        opened=opened,
        closed=closed,
        ends=None,
        hourly=hourly,
        per_hour=rate.per_hour,
        per_month=rate.per_month,
        so_far=so_far(rate, opened, closed or datetime.now(UTC), limited=not hourly),
        currency=catalog.CURRENCY,
        is_kept=is_kept,
    )


def so_far(rate: Rate, opened: datetime, end: datetime, *, limited: bool) -> Decimal:
    """Add up started hours; what is limited costs at most its price of a month in each calendar month (UTC)."""
    total, begin = Decimal(0), opened
    while True:
        until = max(begin, min(end, _next_month(begin)))
        hours = max(1, math.ceil((until - begin) / HOUR))
        total += min(rate.per_hour * hours, rate.per_month) if limited else rate.per_hour * hours
        if until >= end:
            return total
        begin = until


def _next_month(moment: datetime) -> datetime:
    here = moment.astimezone(UTC)
    year, month = (here.year + 1, 1) if here.month == 12 else (here.year, here.month + 1)
    return datetime(year, month, 1, tzinfo=UTC)
