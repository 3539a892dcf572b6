"""The object that a call names, and the change that it asks for."""

from typing import Any, TypeVar

from emulator.softlayer.calls import Call
from emulator.softlayer.faults import BAD_REQUEST, Fault, invalid_value, not_found
from emulator.store import Table

NOTES_LENGTH = 1000
Record = TypeVar("Record")


def identifier(call: Call) -> int:
    """The id of the call, a number or its digits."""
    if call.identifier in (None, ""):
        raise Fault(BAD_REQUEST, f"{call.service}::{call.method} needs the id of an object (InitParameters).")
    if not str(call.identifier).isdigit():
        raise not_found(call.identifier)
    return int(call.identifier)


def find(records: Table[Record], call: Call) -> Record:
    """The record that a call names."""
    key = identifier(call)
    if key not in records:
        raise not_found(key)
    return records[key]


def edit(record: Any, call: Call, *editable: str) -> None:
    """Set the new values of an edit call; properties that cannot be edited are refused."""
    changes = call.argument
    unknown = sorted(set(changes) - set(editable))
    if unknown:
        raise invalid_value(unknown[0], "It cannot be edited.")
    if len(str(changes.get("notes") or "")) > NOTES_LENGTH:
        raise invalid_value("notes", f"It may have {NOTES_LENGTH} characters.")
    for name, value in changes.items():
        setattr(record, name, value)
