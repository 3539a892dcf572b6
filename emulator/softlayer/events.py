"""What a change of a record means: pure, from the record before and after."""

from __future__ import annotations

from typing import Any

FIRST = {"guests": "ordered", "orders": "ordered", "volumes": "ordered", "billing_items": "opened"}
LAST = {"guests": "gone", "volumes": "gone"}
MOMENTS = {"provisioned": "provisioned", "cancelled": "cancelled", "closed": "closed"}  # a field that gets its moment


def events_of(kind: str, before: Any, after: Any) -> list[dict[str, str]]:
    """The events, in order, that lead from one state of a record to the next; None where it was not there."""
    names = []
    if before is None:
        names.append(FIRST.get(kind, "made"))
    if after is not None:
        names += _passed(before, after)
    if after is None:
        names.append(LAST.get(kind, "removed"))
    return [{"event": name, "what": kind.removesuffix("s")} for name in names]


def _passed(before: Any, after: Any) -> list[str]:
    names = [
        event
        for field, event in MOMENTS.items()
        if getattr(after, field, None) is not None and getattr(before, field, None) is None
    ]
    if getattr(before, "upgrade", None) and not after.upgrade and after.cancelled is None:
        names.insert(0, "upgraded")
    if before is not None and getattr(before, "fees", None) is not None and len(before.fees) != len(after.fees):
        names.insert(0, "upgraded")
    status = getattr(after, "status", None)
    if before is not None and isinstance(status, str) and status != before.status:
        names.append(status.lower())
    return names
