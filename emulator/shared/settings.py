"""The settings of every account: defaults here, then DIR/settings.toml, then the command line."""

import hashlib
import secrets
from dataclasses import field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import ConfigDict, Field, PositiveFloat, field_validator, model_validator
from pydantic.dataclasses import dataclass

from emulator.machines.host_tools import kept_text
from emulator.machines.spec import MACHINE_IMAGE
from emulator.shared.fault_injection import BROKEN_TLS, COMMON_KINDS, FaultModel, FaultRates

SETTINGS_FILE = "settings.toml"
KEY_BYTES = 32
LOOPBACK = "127.0.0.1"
LONGEST_LAG_S = 3600.0  # of the account's clock
KNOWN_ONLY = ConfigDict(extra="forbid")


class UsageError(Exception):
    """The user asked for something that cannot be; the message is a full sentence."""


@dataclass(frozen=True, config=KNOWN_ONLY)
class Settings:
    """Every field except ``state`` may be set in ``settings.toml``. A vendor adds its own.

    Seconds are seconds of the account's own clock: with ``clock_rate`` 600 one real second is ten minutes of rent.
    """

    IMAGES: ClassVar[tuple[str, ...]] = (MACHINE_IMAGE,)  # of the machines
    FAULT_MODEL: ClassVar[FaultModel] = FaultModel(COMMON_KINDS)
    KEY_FILE: ClassVar[str] = "authorization"  # in the account's folder: its key, as headers that curl takes
    COMMAND: ClassVar[str] = "python -m emulator {}"  # with a word in it, the command for an account of this vendor

    state: Path
    port: int = 8170
    tls: bool = False  # serve over https; clients have to trust authority.pem
    machines: Literal["containers", "none"] = "containers"  # none: nothing runs behind what is rented
    clock_rate: PositiveFloat = 1.0
    clock_step_s: float = 0.0  # above 0, each call moves the clock by so much, and real time does not
    clock_start: str = ""  # what the clock shows when the account is new, in ISO 8601 with offset; empty: now
    seed: int = 0  # of the ids and of everything that is drawn at random
    # One network per router in use; the first router that gets a machine takes the first one.
    private_subnets: tuple[str, ...] = ("10.112.7.0/24", "10.112.8.0/24", "10.112.9.0/24", "10.112.10.0/24")
    # A documentation range, and no more of it than 61 machines need: some networks have hosts of their own in the rest.
    public_subnet: str = "203.0.113.0/26"
    registry_name: str = "ngc.microcluster.internal"
    registry_port: int = 5000
    boot_workers: int = 4  # machines that boot at the same time
    history: bool = False  # write every call and every event to history.jsonl
    calls_per_second: int = 50  # of the whole account, in real seconds; 0: no limit
    faults: FaultRates = field(default_factory=FaultRates)  # the table ``faults``; see fault_injection.py
    # Lists show everything so much later: orders as well as cancellations.
    list_lag_s: Annotated[float, Field(le=LONGEST_LAG_S)] = 0.0

    @cached_property
    def api_key(self) -> str:
        """The account's key, made anew by `start`; only the account's owner can read it."""
        headers = "Content-Type: application/json\nAuthorization: Bearer {}\n"
        return kept_text(self.state / self.KEY_FILE, lambda: headers.format(secrets.token_urlsafe(KEY_BYTES))).split()[
            -1
        ]

    @property
    def account_name(self) -> str:
        """The name on every container, network and image of this account."""
        return "acct-" + hashlib.sha256(str(self.state).encode()).hexdigest()[:8]

    @property
    def address(self) -> str:
        """The URL of the account's server on this computer."""
        return f"{'https' if self.tls else 'http'}://{LOOPBACK}:{self.port}"

    @field_validator("faults", mode="before")
    @classmethod
    def _read_faults(cls, given: Any) -> Any:
        return cls.FAULT_MODEL.read_rates(given) if isinstance(given, dict) else given

    @model_validator(mode="after")
    def _fit_each_other(self) -> Self:
        if self.faults.rates.get(BROKEN_TLS) and not self.tls:
            raise ValueError(f"the fault {BROKEN_TLS} needs TLS; use tls = true, or --tls")
        if self.clock_step_s and self.machines != "none":
            raise ValueError("with clock_step_s no machine can boot in time; use machines = 'none'")
        return self
