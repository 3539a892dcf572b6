"""The object that a call names (by number, by digits, or by GUID), and the changes that it asks for."""

from typing import Any, TypeVar

from emulator.softlayer.account import Account
from emulator.softlayer.calls import Call
from emulator.softlayer.faults import BAD_REQUEST, Fault, invalid_value, not_found
from emulator.softlayer.records import Guest

NOTES_LENGTH = 1000
Record = TypeVar("Record")


def identifier(call: Call) -> int | str:
    """The id of the call, as a number where it is one."""
    if call.identifier in (None, ""):
        raise Fault(BAD_REQUEST, f"{call.service}::{call.method} needs the id of an object (InitParameters).")
    return int(call.identifier) if str(call.identifier).isdigit() else str(call.identifier)


def find(records: dict[int, Record], call: Call) -> Record:
    """The record that a call names."""
    key = identifier(call)
    if key not in records:
        raise not_found(call.identifier)
    return records[key]


def find_guest(account: Account, call: Call) -> Guest:
    """The guest that a call names, by id or GUID."""
    key = identifier(call)
    guests = account.store.guests
    guest_id = key if key in guests else next((each.id for each in guests.read_all() if each.uuid == key), None)
    if guest_id is None:
        raise not_found(call.identifier)
    return guests[guest_id]


def changes_of(call: Call, *editable: str) -> dict[str, Any]:
    """The new values of an edit call; properties that cannot be edited are refused."""
    changes = call.argument(0)
    unknown = sorted(set(changes) - set(editable))
    if unknown:
        raise invalid_value(unknown[0], "It cannot be edited.")
    if len(str(changes.get("notes") or "")) > NOTES_LENGTH:
        raise invalid_value("notes", f"It may have {NOTES_LENGTH} characters.")
    return changes
