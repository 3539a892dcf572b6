"""The events of the history: what a change of a record means, from the record before and after."""

from typing import Any


def events_of(kind: str, before: Any, after: Any) -> list[dict[str, Any]]:
    """The events that lead from one state of a record to the next; None where it was not there."""
    names = []
    if before is None:
        names.append("made")
    if after is not None and (state := getattr(after, "state", None)) and state != getattr(before, "state", None):
        names.append(state)
    if before is not None and after is not None and before.__dict__.get("closed") != after.__dict__.get("closed"):
        names.append("closed")
    if after is None:
        names.append("gone")
    record = before if after is None else after
    bills = {"bills": record.kind, "per_hour": record.per_hour} if kind == "billing_items" else {}
    facts = {"name": getattr(record, "name", None), "ref": getattr(record, "ref", getattr(record, "ip", None))}
    return [{"event": name, "what": kind.removesuffix("s"), **facts, **bills} for name in names]
