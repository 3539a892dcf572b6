"""The settings that only an emulated SoftLayer account has."""

from dataclasses import field
from typing import ClassVar, Literal

from pydantic import PositiveFloat
from pydantic.dataclasses import dataclass

from emulator.shared import settings
from emulator.shared.fault_injection import BEFORE, COMMON_KINDS, DROP, HELD, LIST_KINDS, STALE, FaultKind, FaultModel
from emulator.softlayer.calls import SERVICE_PREFIX
from emulator.softlayer.faults import SERVICE_FAULTS

FAULT_KINDS = {
    **COMMON_KINDS,
    "error": FaultKind((*COMMON_KINDS["error"].ways, *SERVICE_FAULTS), BEFORE),
    STALE: LIST_KINDS[STALE],
    "no_total": FaultKind(("header",), hits=lambda call: call.is_list),  # the header with a list's length is missing
    # A receipt that does not name the guests.
    "bare_receipt": FaultKind(("cut",), hits=lambda call: call.name == "Product_Order::placeOrder"),
    "capacity": FaultKind(("refused",), BEFORE, lambda call: call.is_order),
    # A gateway sends the caller away, and the service carries the order out so much later.
    HELD: FaultKind(("http_504", DROP), BEFORE, lambda call: call.is_order),
}


@dataclass(frozen=True, config=settings.KNOWN_ONLY)
class Settings(settings.Settings):
    """Settings of a SoftLayer account, added to those that every account has."""

    FAULT_MODEL: ClassVar[FaultModel] = FaultModel(FAULT_KINDS, SERVICE_PREFIX)

    username: str = "local"
    restricted_user: str = ""  # a second user, with the same key, who may do only this:
    restricted_permissions: tuple[str, ...] = ()  # key names, as in users.py
    provisioning_s: float = 10.0
    gap_s: float = 0.5  # of provisioning_s, between two transactions, without any transaction; at most half of it
    reclaim_s: float = 5.0
    instance_limit: int = 20
    # "lon04" or "lon04/AC1_16X120X100" to the number of guests that there is room for; without an entry, no limit.
    capacity: dict[str, int] = field(default_factory=dict)
    capacity_code: Literal["new", "old"] = "new"  # old: the fault for a lack of room as it was called until about 2018
    price_factor: PositiveFloat = 1.0  # of what is ordered from now on: its fees, as a multiple of the price list's
    # pending: orders wait for `python -m emulator approve ORDER` or `refuse ORDER`
    approval: Literal["auto", "pending"] = "auto"

    @property
    def endpoint(self) -> str:
        """The XML-RPC endpoint on this computer."""
        return f"{self.address}/xmlrpc/v3.1/"
