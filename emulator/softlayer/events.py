"""The events of the history: what a change of a record means, from the record before and after."""

from typing import Any

from emulator.softlayer.billing import per_hour
from emulator.softlayer.records import BillingItem

FIRST = {"guests": "ordered", "orders": "ordered", "volumes": "ordered", "billing_items": "opened"}
LAST = {"guests": "gone", "volumes": "gone"}
MOMENTS = ("provisioned", "cancelled", "closed")  # fields that are None until the event of the same name


def events_of(kind: str, before: Any, after: Any) -> list[dict[str, Any]]:
    """The events, in order, that lead from one state of a record to the next; None where it was not there."""
    names = []
    if before is None:
        names.append(FIRST.get(kind, "made"))
    if after is not None:
        names += _changes(before, after)
    if after is None:
        names.append(LAST.get(kind, "removed"))
    facts = _facts(before if after is None else after)
    return [{"event": name, "what": kind.removesuffix("s"), **facts} for name in names]


def _changes(before: Any, after: Any) -> list[str]:
    names = [name for name in MOMENTS if getattr(after, name, None) is not None and getattr(before, name, None) is None]
    status = getattr(after, "status", None)
    if before is not None and isinstance(status, str) and status != before.status:
        names.append(status.lower())
    return names


def _facts(record: Any) -> dict[str, str | None]:
    texts = (getattr(record, name, None) for name in ("notes", "label", "description", "name"))
    return {
        "host": getattr(record, "hostname", None),
        "domain": getattr(record, "domain", None),
        "per_hour": str(per_hour(record)) if isinstance(record, BillingItem) else None,
        "notes": next((text for text in texts if text), None),
    }
