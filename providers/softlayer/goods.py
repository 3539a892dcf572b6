"""Things that are ordered through a container and whose receipt names only the order: volumes and VLANs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from providers.softlayer.calls import Api
from providers.softlayer.errors import ProviderError

Row = dict[str, Any]

ORDER_PREFIX = "order-"
"""The id of a thing whose order was accepted and which the account does not show yet."""
BILLING_MASK = (
    "billingItem[id,description,categoryCode,hourlyFlag,createDate,cycleStartDate,cancellationDate,hourlyRecurringFee,"
    "recurringFee,currentHourlyCharge,"
    "children[createDate,cycleStartDate,hourlyRecurringFee,recurringFee,currentHourlyCharge],"
    "orderItem[order[id,status,userRecord[username]]]]"
)


@dataclass(frozen=True)
class Goods:
    """One kind of such things, and how the account shows them."""

    kind: str
    """The resource's type, as the journal has it."""
    word: str
    service: str
    mask: str
    listed: Callable[[Api], list[Row]]
    bears: Callable[[Row, str], bool]
    """Tells whether a thing carries exactly this mark."""

    def marked(self, api: Api, owner_mark: str) -> list[Row]:
        """List what carries the mark; what has no billing item is not billed any more."""
        return [each for each in self.listed(api) if self.bears(each, owner_mark)]

    def located(self, api: Api, thing_id: str, order: str | None) -> Row | None:
        """Find a thing by its id, or by its order: the id may change while a volume is provisioned."""
        wanted = order_of_id(thing_id) or order
        found = None if order_of_id(thing_id) else api.find(self.service, thing_id, self.mask)
        if found is None and wanted:
            # The list is looked through here, as a filter may be ignored.
            found = next((each for each in self.listed(api) if order_id(each) == wanted), None)
        return found

    def named(self, row: Row) -> str:
        """Name a thing for a person."""
        return f"{self.word} {row['id']}"

    def the_only(self, found: Sequence[Row], doing: str) -> Row | None:
        """Return the only one, or None; several are refused and listed, as nobody knows which is meant."""
        if len(found) > 1:
            ids = ", ".join(str(each["id"]) for each in found)
            raise ProviderError(
                f"{doing}: several {self.word}s fit: {ids}. Nothing was touched; cancel those that are too many."
            )
        return found[0] if found else None


def order_of_id(thing_id: str) -> str | None:
    """Read the order out of the id of a thing that is not shown yet."""
    return thing_id.removeprefix(ORDER_PREFIX) if thing_id.startswith(ORDER_PREFIX) else None


def order_id(row: Mapping[str, Any]) -> str | None:
    """Return the order that made a thing; what is not billed any more does not tell."""
    number = _order(row).get("id")
    return str(number) if number else None


def ordered_by(row: Mapping[str, Any]) -> str | None:
    """Return the user who ordered a thing."""
    return (_order(row).get("userRecord") or {}).get("username")


def is_billed(row: Mapping[str, Any]) -> bool:
    """Tell whether a thing still has a billing item."""
    return bool(row.get("billingItem"))


def place_of(api: Api, datacenter: str, what: str) -> int:
    """Return the account's number of a datacenter."""
    for each in api.read("Location_Datacenter", "getDatacenters", mask="mask[id,name]"):
        if each["name"] == datacenter:
            return int(each["id"])
    raise ProviderError(f"ordering {what}: the account knows no datacenter {datacenter}. Choose another one.")


def receipt_order(receipt: Any) -> str | None:
    """Read the id of a thing to come out of the receipt of its order."""
    placed = receipt.get("placedOrder") or {} if isinstance(receipt, dict) else {}
    number = placed.get("id") or (receipt.get("orderId") if isinstance(receipt, dict) else None)
    return f"{ORDER_PREFIX}{number}" if number else None


def _order(row: Mapping[str, Any]) -> Mapping[str, Any]:
    return ((row.get("billingItem") or {}).get("orderItem") or {}).get("order") or {}
