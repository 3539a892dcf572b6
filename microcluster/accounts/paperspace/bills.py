"""Bills of the past and of now, computed by the dated price list: the API shows rates and no bill.

What lives is dated by the account; of what has ended the journal knows what was ordered, and a machine's events its dates.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from microcluster.accounts.paperspace import catalog, views
from microcluster.accounts.paperspace.views import DRIVE, MACHINE, NETWORK
from microcluster.accounts.shared.account import Resource
from microcluster.accounts.shared.receipt import Charge
from microcluster.core.home import Owner


def charges(market: Any, owner: Owner, known: Iterable[str] = ()) -> tuple[Charge, ...]:
    """List past and running charges of this stack and mark, oldest first.

    Args:
        market: a ``Paperspace``.
        known: machines that the list may not show yet.
    """
    living = [views.VIEWS[kind](row) for kind in (DRIVE, NETWORK) for row in market.under(kind, owner)]
    listed = {str(row["id"]) for row in market.under(MACHINE, owner)}
    rows = [market.api.find("/machines", each) for each in sorted({*listed, *known})]
    living += [machine for row in rows if row and (machine := views.machine(row)).owner == owner]
    now = datetime.now(UTC) - timedelta(seconds=market.clock_ahead_s)
    all_charges = [each for resource in living for each in charges_of(resource, None, now)]
    for ended, closed in _ended(market, owner, {each.id for each in living}):
        all_charges += charges_of(ended, closed, now)
    return tuple(sorted(all_charges, key=lambda each: (each.opened, each.host, each.id)))


def _ended(market: Any, owner: Owner, living: set[str]) -> Iterator[tuple[Resource, datetime | None]]:
    """Yield ended resources that the journal has ordered, each with its end: another computer may have ended a machine."""
    journal = market.journal(owner)
    dates = {each["id"]: views.moment(each.get("at")) for each in journal.events() if each["event"] == "closed"}
    for kind in (MACHINE, DRIVE, NETWORK):
        for object_id, intent in journal.made(kind).items():
            if object_id in living:
                continue
            opened, closed = views.moment(intent.at), dates.get(object_id)
            if kind == MACHINE:
                events = market.events(object_id)
                made, gone = views.of_name(events, "create") or {}, views.of_name(events, "deactivate") or {}
                opened = views.moment(made.get("dtCreated")) or opened
                closed = views.moment(gone.get("dtFinished") or gone.get("dtCreated")) or closed
            if closed or object_id in dates:
                inputs = _sold(kind, intent.sold)
                yield Resource(kind, object_id, intent.called, owner, since=opened, inputs=inputs), closed


def _sold(kind: str, text: str) -> Mapping[str, Any]:
    """Read the ordered inputs from the journal; an older version wrote bare words."""
    if text.startswith("{"):
        return json.loads(text)
    if kind == DRIVE:
        return {"sizeGb": int(text or 0)}
    machine_type, disk_gb, address = [*text.split(), "", "0", "none"][:3]
    return {"machineType": machine_type, "diskGb": int(disk_gb), "publicIpType": address}


def charges_of(resource: Resource, closed: datetime | None, now: datetime) -> list[Charge]:
    """Return a charge for each billed part of a resource, from the resource's beginning on."""
    opened, part_charges = resource.since or now, []
    for category, part in views.parts_of(resource).items():
        is_part, rate = category != resource.kind, part.rate
        charge = Charge(
            id=f"{resource.id}/{category}" if is_part else resource.id,
            description=f"{part.what} (by the price list of {catalog.AS_OF})",
            host=part.of,
            category=category,
            opened=opened,
            closed=closed,
            ends=None,
            hourly=rate.per_month is None,
            per_hour=rate.per_hour,
            per_month=rate.per_month or Decimal(0),
            so_far=rate.cost(opened, closed or now),
            currency=catalog.CURRENCY,
            is_kept=resource.is_kept,
            is_part=is_part,
            by_month=rate.by_month,
        )
        part_charges.append(charge)
    return part_charges
