"""The settings that only an emulated Paperspace account has."""

from dataclasses import field
from typing import ClassVar

from pydantic.dataclasses import dataclass

from emulator.shared import settings
from emulator.shared.fault_injection import BEFORE, COMMON_KINDS, LIST_KINDS, FaultKind, FaultModel

BOX_IMAGE, DRIVE_IMAGE = "microcluster/ml-in-a-box:current", "microcluster/drive:current"
MACHINES_CREATE = "machines-create"
VENDOR_ERRORS = ("too_many_requests", "internal_server_error", "timeout")
FAULT_KINDS = {
    **COMMON_KINDS,
    **LIST_KINDS,
    "error": FaultKind((*COMMON_KINDS["error"].ways, *VENDOR_ERRORS), BEFORE),
    "capacity": FaultKind(("refused",), BEFORE, lambda call: call.name == MACHINES_CREATE),
}


@dataclass(frozen=True, config=settings.KNOWN_ONLY)
class Settings(settings.Settings):
    """Settings of a Paperspace account, added to those that every account has."""

    IMAGES: ClassVar[tuple[str, ...]] = (BOX_IMAGE, DRIVE_IMAGE)
    FAULT_MODEL: ClassVar[FaultModel] = FaultModel(FAULT_KINDS)
    COMMAND: ClassVar[str] = "python -m emulator {} paperspace"

    port: int = 8180
    provisioning_s: float = 10.0
    # One network each for what people create, and one for every machine without one: such a machine is alone.
    private_subnets: tuple[str, ...] = tuple(f"10.64.{number}.0/24" for number in range(21, 29))
    public_subnet: str = "198.18.64.0/26"  # of the range for tests between networks (RFC 2544)
    registry_name: str = ""  # Paperspace has none
    calls_per_second: int = 0  # the vendor documents no limit
    member_key: str = ""  # a second key: of a team member to whom no machine was assigned
    max_machines: int = 20  # the team's, as /auth/session says
    # "ny2/P4000x2" to the number of machines that there is room for; without an entry, no limit.
    capacity: dict[str, int] = field(default_factory=dict)
    failed_rate: float = 0.0  # of creations that are accepted and whose event then ends with an error

    @property
    def api(self) -> str:
        """The base of the API on this computer."""
        return f"{self.address}/v1"
