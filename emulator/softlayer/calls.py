"""One call as it came in, whichever protocol carried it; the object that it names, and the change that it asks for."""

import json
from dataclasses import dataclass
from typing import Any, TypeVar

from emulator.shared.store import Table
from emulator.softlayer.faults import BAD_REQUEST, INVALID_PARAMETERS, Fault, invalid_value, lacks, not_found

SERVICE_PREFIX = "SoftLayer_"
ACCOUNT_SERVICE = "SoftLayer_Account"
TOTAL_HEADER = "SoftLayer-Total-Items"
READS = ("get", "is", "verify", "generateOrderTemplate")  # they change nothing
NOTES_LENGTH = 1000
Record = TypeVar("Record")
ORDERS = ("Virtual_Guest::createObject", "Product_Order::placeOrder")


@dataclass(frozen=True)
class Credentials:
    """The caller's user name and key."""

    username: str = ""
    api_key: str = ""


@dataclass(frozen=True)
class Call:
    """A service's method with everything that was sent along."""

    service: str
    method: str
    arguments: tuple[Any, ...] = ()
    identifier: int | str | None = None
    mask: str | None = None
    filter: dict[str, Any] | None = None
    limit: int | None = None
    offset: int = 0
    credentials: Credentials = Credentials()

    @property
    def name(self) -> str:
        """The method with its service, without the prefix that every service has."""
        return f"{self.service.removeprefix(SERVICE_PREFIX)}::{self.method}"

    @property
    def detail(self) -> str:
        """The id or the filter: what tells calls apart that are about nothing with a name."""
        return str(self.identifier or "") or json.dumps(self.filter or "", sort_keys=True, default=str)

    @property
    def is_read(self) -> bool:
        """Whether the call changes nothing."""
        return self.method.startswith(READS)

    @property
    def is_list(self) -> bool:
        """Whether the call lists what the account has."""
        return self.method == "getAllObjects" or (self.service == ACCOUNT_SERVICE and self.is_read)

    @property
    def is_order(self) -> bool:
        """Whether the call orders something."""
        return self.name in ORDERS

    @property
    def argument(self) -> Any:
        """The first argument, which has to be there; others change nothing."""
        if not self.arguments:
            raise Fault(INVALID_PARAMETERS, f"{self.service}::{self.method}: parameter 1 is missing.")
        return self.arguments[0]


@dataclass(frozen=True)
class Answer:
    """Plain data for the caller; ``total`` counts a list before it was paged."""

    value: Any
    total: int | None = None


def identifier(call: Call) -> int:
    """The id of the call, a number or its digits."""
    if call.identifier in (None, ""):
        raise Fault(BAD_REQUEST, f"{call.service}::{call.method} needs the id of an object (InitParameters).")
    if not str(call.identifier).isdigit():
        raise lacks(f"the id '{call.identifier}': only numbers")
    return int(call.identifier)


def find(records: Table[Record], call: Call) -> Record:
    """The record that a call names."""
    key = identifier(call)
    if key not in records:
        raise not_found(key)
    return records[key]


def apply_edit(record: Any, call: Call, *editable: str) -> None:
    """Set the new values of an edit call; properties that cannot be edited are refused."""
    changes = call.argument
    unknown = sorted(set(changes) - set(editable))
    if unknown:
        raise invalid_value(unknown[0], "It cannot be edited.")
    if len(str(changes.get("notes") or "")) > NOTES_LENGTH:
        raise invalid_value("notes", f"It may have {NOTES_LENGTH} characters.")
    for name, value in changes.items():
        setattr(record, name, value)
