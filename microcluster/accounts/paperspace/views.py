"""A machine, a network, a drive and a startup script as the account shows them, and what that means."""

import ipaddress
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from microcluster.accounts.paperspace import catalog
from microcluster.accounts.paperspace.specs import read_name
from microcluster.accounts.shared.account import EXTENSION, Claim, OrderStatus, Pending, Resource, Terms
from microcluster.accounts.shared.api_calls import text_at
from microcluster.core.catalog.billing_rules import Part

MACHINE, NETWORK, DRIVE, SCRIPT, CLAIM, TERMS = "machine", "network", "drive", "script", "claim", "terms"
OFF, READY, PROVISIONING = "off", "ready", "provisioning"
ON = (READY, "serviceready")
STATIC = "static"
STUCK = timedelta(minutes=30)
"""The vendor calls more than ten minutes in provisioning a case for its support; its clients wait for thirty."""
GIB = 1024**3
LARGEST_GB = 100_000
"""A larger number is one of bytes: the API does not say in which unit it answers."""
SWITCHES = ("autoShutdownEnabled", "autoSnapshotEnabled", "restorePointEnabled")
"""Switches that stop a machine or cost money unasked: ordered off, and put off again when a person puts one on."""
UNDER_WAY = ("new", "in progress", "in_progress")
"""States of an event; the vendor's document and its client spell one of them in two ways."""
BOOT = "boot-"
"""Prefix of a startup script's name; the machine's host name and the nonce of its order follow."""
BOOT_NAME = re.compile(rf"(?P<called>{BOOT}.+)-(?P<nonce>[0-9a-f]{{16}})")
CLAIM_NAME = re.compile(rf"claim-(?P<journal>[0-9a-f]{{8}})(?:-(?P<extended>{EXTENSION}))?")
"""Versions before the terms read no other word in it, so these are the name of a script of their own: ``terms-WORD``."""

Row = Mapping[str, Any]


def machine(row: Row, events: Sequence[Row] = ()) -> Resource:
    """Read a machine.

    Args:
        events: its machine events, as far as they were asked for.
    """
    state = str(row.get("state"))
    return _billed(
        MACHINE,
        row,
        work=None if state in (OFF, *ON) or is_stuck(row, events) else state,
        is_built=state != PROVISIONING,
        order=failed_creation(events),
        unready=_unready(row, state, events),
        rename=f"pspace machine update {row['id']} --name HOSTNAME.",
        # Template and startup script are not shown.
        inputs={
            "region": _region(row),
            "machineType": str(row.get("machineType")),
            "diskGb": round(number(row.get("storageTotal")) / GIB),
            "networkId": str(row.get("networkId")),
            "publicIpType": str(row.get("publicIpType")),
        },
        outputs={"publicIp": row.get("publicIp") or None, "privateIp": row.get("privateIp") or None},
    )


def network(row: Row) -> Resource:
    """Read a network."""
    return _billed(NETWORK, row, inputs=_named_inputs(row), outputs={"subnet": subnet(row)})


def drive(row: Row) -> Resource:
    """Read a drive, without its password."""
    address, share = mount_point(row)
    shown = {key: value for key, value in row.items() if key != "password"}
    inputs = {**_named_inputs(row), "sizeGb": size_gb(row), "networkId": str(row.get("networkId"))}
    outputs = {"address": address, "share": share, "username": text_at(row, "username")}
    return _billed(DRIVE, shown, inputs=inputs, outputs=outputs)


def script(row: Row) -> Resource:
    """Read a startup script: one of a machine, or the stack's claim with the rental's terms."""
    if claim_of(row) or terms_of(row):
        return _resource(CLAIM, row, short_name=CLAIM if claim_of(row) else TERMS)
    found = _resource(SCRIPT, row, what="startup script")
    named = BOOT_NAME.fullmatch(found.called)
    return replace(found, short_name=named["called"], outputs={"nonce": named["nonce"]}) if named else found


VIEWS: Mapping[str, Callable[[Row], Resource]] = {
    MACHINE: machine,
    NETWORK: network,
    DRIVE: drive,
    SCRIPT: script,
    CLAIM: script,
}


def parts_of(found: Resource) -> Mapping[str, Part]:
    """Return the billed parts of a resource by category; a part that is not on the price list is free."""
    shown, name = found.inputs, found.called
    if found.kind == MACHINE:
        return catalog.machine_parts(name, shown["machineType"], shown["diskGb"], shown["publicIpType"])
    if found.kind == NETWORK:
        return {NETWORK: Part(name, "private network", catalog.NETWORK)}
    size = shown["sizeGb"]
    return {DRIVE: Part(name, f"drive of {size} GB", catalog.DRIVES.get(size, catalog.FREE))}


def _billed(kind: str, row: Row, **more: Any) -> Resource:
    found = _resource(kind, row, is_billed=True, **more)
    rates = [part.rate for part in parts_of(found).values()]
    per_hour = sum((rate.per_hour for rate in rates), Decimal(0))
    price = f"{per_hour} USD an hour by the price list of {catalog.AS_OF}"
    return replace(found, per_hour=per_hour, price="the price of its size" if catalog.FREE in rates else price)


def _named_inputs(row: Row) -> dict[str, Any]:
    named = read_name(row.get("name"))
    return {"name": named.label, "region": _region(row), "keep": named.is_kept} if named else {}


def _resource(kind: str, row: Row, **more: Any) -> Resource:
    """Read the fields that every resource of the account has."""
    named = read_name(row.get("name"))
    owned = {"owner": named.owner, "short_name": named.label, "is_kept": named.is_kept} if named else {"owner": None}
    shown = {"since": moment(row.get("dtCreated")), "row": row, **owned, **more}
    return Resource(kind, str(row["id"]), text_at(row, "name"), **shown)


def _region(row: Row) -> str:
    return catalog.slug(text_at(row, "region"))


def subnet(row: Row) -> str | None:
    """Write a network's address and mask as one, for example ``10.64.21.0/24``."""
    try:
        return str(ipaddress.ip_network(f"{row.get('network')}/{row.get('netmask')}"))
    except ValueError:
        return None


def size_gb(row: Row) -> int:
    """Read the size of a drive, which may be bytes or GB, a number or a text."""
    given = number(row.get("size"))
    return round(given / GIB if given > LARGEST_GB else given)


def mount_point(row: Row) -> tuple[str | None, str | None]:
    r"""Read address and share from ``\\10.64.92.2\sdvkpg3v2v``, with slashes of either kind."""
    found = re.fullmatch(r"[\\/]*([0-9A-Za-z.-]+)[\\/]+([0-9A-Za-z._-]+)[\\/]*", text_at(row, "mountPoint"))
    return (found[1], found[2]) if found else (None, None)


def claim_of(row: Row) -> Claim | None:
    """Read a claim in the name of its script; None where that is none."""
    named = read_name(row.get("name"))
    found = CLAIM_NAME.fullmatch(named.label) if named else None
    return Claim(str(row["id"]), found["journal"], found["extended"] or "") if found else None


def claim_label(claim: Claim) -> str:
    """Write a claim as a label."""
    return f"claim-{claim.journal}" + (f"-{claim.extended}" if claim.extended else "")


def terms_of(row: Row) -> Terms | None:
    """Read the terms of the rental in the name of their script; None where that is none."""
    named = read_name(row.get("name"))
    head, _, word = named.label.partition("-") if named else ("", "", "")
    return Terms.read(word) if head == TERMS else None


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
    named = [each for each in events if each.get("name") == name]
    return max(named, key=lambda each: str(each.get("dtCreated")), default=None)


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
    has_one = row.get("publicIpType") == STATIC and row.get("publicIp")
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
