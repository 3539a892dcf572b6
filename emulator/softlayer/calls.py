"""One call as it came in, whichever protocol carried it."""

import json
from dataclasses import dataclass
from typing import Any

from emulator.softlayer.faults import INVALID_PARAMETERS, Fault

SERVICE_PREFIX = "SoftLayer_"
ACCOUNT_SERVICE = "SoftLayer_Account"
TOTAL_HEADER = "SoftLayer-Total-Items"
READS = ("get", "is", "verify", "generateOrderTemplate", "advancedSearch", "check", "find")  # they change nothing
ORDERS = ("Virtual_Guest::createObject", "Virtual_Guest::createObjects", "Product_Order::placeOrder")


@dataclass(frozen=True)
class Credentials:
    """Who calls: a user with a key."""

    username: str
    api_key: str


@dataclass(frozen=True)
class Call:
    """A service's method with everything that was sent along."""

    service: str
    method: str
    arguments: tuple[Any, ...] = ()
    identifier: int | str | None = None
    mask: str | dict[str, Any] | None = None
    filter: dict[str, Any] | None = None
    limit: int | None = None
    offset: int = 0
    credentials: Credentials | None = None

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

    def argument(self, position: int, default: Any = ...) -> Any:
        """An argument by its position; without a default it has to be there."""
        if position < len(self.arguments):
            return self.arguments[position]
        if default is ...:
            raise Fault(INVALID_PARAMETERS, f"{self.service}::{self.method}: parameter {position + 1} is missing.")
        return default


def full_name(service: str) -> str:
    """The name of a service with the prefix, which clients may leave out."""
    return service if service.startswith(SERVICE_PREFIX) else SERVICE_PREFIX + service


@dataclass(frozen=True)
class Answer:
    """Plain data for the caller; ``total`` counts a list before it was paged."""

    value: Any
    total: int | None = None
