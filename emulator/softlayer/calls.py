"""One call as it came in, whichever protocol carried it."""

import json
from dataclasses import dataclass
from typing import Any

from emulator.softlayer.faults import INVALID_PARAMETERS, Fault

SERVICE_PREFIX = "SoftLayer_"
ACCOUNT_SERVICE = "SoftLayer_Account"
TOTAL_HEADER = "SoftLayer-Total-Items"
READS = ("get", "is", "verify", "generateOrderTemplate")  # they change nothing
ORDERS = ("Virtual_Guest::createObject", "Product_Order::placeOrder")


@dataclass(frozen=True)
class Credentials:
    """Who calls: a user with a key."""

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
