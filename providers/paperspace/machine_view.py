"""A machine as the kernel sees it: what the account shows of it, and what that means."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from core.catalog import paperspace as catalog
from providers.paperspace import names
from providers.rental.backend import OrderStatus, Thing
from providers.rental.waiting import Pending

KIND = "machine"
OFF, READY, PROVISIONING = "off", "ready", "provisioning"
ON = (READY, "serviceready")
STUCK = timedelta(minutes=30)
"""The vendor calls more than ten minutes in provisioning a case for its support; its clients wait for thirty."""
GIB = 1024**3
SWITCHES = ("autoShutdownEnabled", "autoSnapshotEnabled", "restorePointEnabled")
"""What would stop a run or cost money behind its back; ordered off, and put off again when somebody puts it on."""
UNDER_WAY = ("new", "in progress", "in_progress")
"""States of an event; the vendor's document and its client spell one of them in two ways."""

Row = Mapping[str, Any]


def thing(row: Row, events: Sequence[Row] = ()) -> Thing:
    """Read a machine.

    Args:
        events: its machine events, as far as they were asked for.
    """
    named = names.read(row.get("name"))
    machine_id, state = str(row["id"]), str(row.get("state"))
    price = catalog.machine_price_per_hour(*_sold(row))
    return Thing(
        kind=KIND,
        id=machine_id,
        name=named.label if named else str(row.get("name") or ""),
        owner=named.owner if named else None,
        label=f"machine {machine_id} ({row.get('name')})",
        is_billed=True,
        work=None if state in (OFF, *ON) or is_stuck(row, events) else state,
        is_built=state != PROVISIONING,
        unready=_unready(row, state, events),
        price=f"{price} USD an hour by the price list of {catalog.AS_OF}" if price else "the price of its type",
        rename=f"pspace machine update {machine_id} --name HOSTNAME.",
        inputs=inputs(row),
        outputs=outputs(row),
        row=row,
    )


def inputs(row: Row) -> dict[str, Any]:
    """Read the ordered properties that the account shows; template and startup script are not among them."""
    return {
        "region": catalog.slug(str(row.get("region") or "")),
        "machineType": str(row.get("machineType")),
        "diskGb": disk_gb(row),
        "networkId": str(row.get("networkId")),
        "publicIpType": str(row.get("publicIpType")),
    }


def outputs(row: Row) -> dict[str, Any]:
    """Read what the program wants to know."""
    price = catalog.machine_price_per_hour(*_sold(row))
    return {
        "publicIp": row.get("publicIp") or None,
        "privateIp": row.get("privateIp") or None,
        "pricePerHour": None if price is None else f"{price:f}",
    }


def disk_gb(row: Row) -> int:
    """Read the size of the disk, which comes as bytes, as a number or as a text."""
    return round(number(row.get("storageTotal")) / GIB)


def number(value: Any) -> float:
    """Read a number of the API, or a text with one; anything else is 0."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return 0.0


def moment(text: Any) -> datetime | None:
    """Read a date of the API."""
    try:
        return datetime.fromisoformat(str(text)).astimezone(UTC)
    except ValueError:
        return None


def of_name(events: Sequence[Row], name: str) -> Row | None:
    """Return the last event of a name."""
    return max(
        (each for each in events if each.get("name") == name), key=lambda each: str(each.get("dtCreated")), default=None
    )


def deletion(events: Sequence[Row]) -> Row | None:
    """Return the event of a deletion that is under way: no state says so."""
    event = of_name(events, "deactivate")
    return event if event and event.get("state") in UNDER_WAY else None


def failed_creation(events: Sequence[Row]) -> OrderStatus | None:
    """Read from the events that a machine will never be built.

    An event may end with ``error``, a date and no text although all went well, as a client of the live service found: that one
    proves nothing, and the machine's own state decides.
    """
    event = of_name(events, "create")
    if event is None or event.get("state") not in ("error", "cancelled"):
        return None
    if event.get("state") == "error" and not event.get("error") and event.get("dtFinished"):
        return None
    said = f": {event['error']}" if event.get("error") else ""
    described = (
        f"its create event {event.get('id')} ended as {event.get('state')}{said}. It is billed until it is deleted"
    )
    return OrderStatus(str(event.get("id")), described, is_refused=True)


def is_stuck(row: Row, events: Sequence[Row]) -> bool:
    """Tell whether a machine is being built and nothing more will come of it."""
    if row.get("state") != PROVISIONING:
        return False
    created = moment(row.get("dtCreated"))
    event = of_name(events, "create")
    has_ended = event is not None and event.get("state") in ("error", "cancelled")
    return has_ended or (created is not None and datetime.now(UTC) - created > STUCK)


def lacks_static_address(row: Row) -> bool:
    """Tell whether a machine that is off or ready has no address of its own."""
    has_one = row.get("publicIpType") == "static" and row.get("publicIp")
    return row.get("state") in (OFF, READY) and not has_one


def _unready(row: Row, state: str, events: Sequence[Row]) -> Pending | None:
    if state != READY:
        event = of_name(events, "create")
        told = f" (its create event is {event.get('state')})" if event and state == PROVISIONING else ""
        return Pending(f"it is {state}{told}")
    if not row.get("privateIp"):
        return Pending("it has no private address yet")
    if row.get("publicIpType") != "none" and not row.get("publicIp"):
        return Pending("it has no public address yet")
    return None


def _sold(row: Row) -> tuple[str, int, str]:
    return str(row.get("machineType")), disk_gb(row), str(row.get("publicIpType"))
