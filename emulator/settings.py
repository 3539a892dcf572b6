"""The settings of every account: defaults here, then DIR/settings.toml, then the command line."""

import dataclasses
import hashlib
import os
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from emulator.fault_injection import BROKEN_TLS, COMMON_KINDS, FaultInjectionError, FaultModel, FaultRates
from emulator.machines.spec import MACHINE_IMAGE

SETTINGS_FILE = "settings.toml"
LOOPBACK = "127.0.0.1"
LONGEST_LAG_S = 3600.0  # of the account's clock


class UsageError(Exception):
    """The user asked for something that cannot be; the message is a full sentence."""


class SettingsError(UsageError):
    """The settings cannot be used."""


@dataclass(frozen=True)
class Settings:
    """Every field except ``state`` may be set in ``settings.toml``. A vendor adds its own.

    Seconds are seconds of the account's own clock: with ``clock_rate`` 600 one real second is ten minutes of rent.
    """

    IMAGES: ClassVar[tuple[str, ...]] = (MACHINE_IMAGE,)  # of the machines
    FAULT_MODEL: ClassVar[FaultModel] = FaultModel(COMMON_KINDS)
    COMMAND: ClassVar[str] = "python -m emulator {}"  # with a word in it, the command for an account of this vendor

    state: Path
    port: int = 8170
    tls: bool = False  # serve over https; clients have to trust authority.pem
    machines: str = "containers"  # or "none": nothing runs behind what is rented
    clock_rate: float = 1.0
    clock_step_s: float = 0.0  # above 0, each call moves the clock by so much, and real time does not
    clock_start: str = ""  # what the clock shows when the account is new, in ISO 8601 with offset; empty: now
    seed: int = 0  # of the ids and of everything that is drawn at random
    api_key: str = "local"
    provisioning_s: float = 10.0
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
    list_lag_s: float = 0.0  # lists show everything so much later: orders as well as cancellations

    @property
    def account_name(self) -> str:
        """The name on every container, network and image of this account."""
        return "acct-" + hashlib.sha256(str(self.state).encode()).hexdigest()[:8]

    @property
    def address(self) -> str:
        """Where the server of this account listens on this computer."""
        return f"{'https' if self.tls else 'http'}://{LOOPBACK}:{self.port}"

    def check(self) -> None:
        """Raise a SettingsError for the first setting that cannot be used."""
        self.check_choice("machines", "containers", "none")
        if self.faults.rates.get(BROKEN_TLS) and not self.tls:
            raise SettingsError(f"emulator settings: the fault {BROKEN_TLS} needs TLS. Use tls = true, or --tls.")
        if self.list_lag_s > LONGEST_LAG_S:
            raise SettingsError(
                f"emulator settings: list_lag_s is {self.list_lag_s}. It may be at most {LONGEST_LAG_S:g}."
            )
        if self.clock_rate <= 0:
            raise SettingsError(f"emulator settings: clock_rate is {self.clock_rate}. It has to be above 0.")
        if self.clock_step_s and self.machines != "none":
            raise SettingsError(
                "emulator settings: with clock_step_s no machine can boot in time. Use machines = 'none'."
            )

    def check_choice(self, name: str, *choices: str) -> None:
        """Raise unless a setting has one of these values."""
        if (value := getattr(self, name)) not in choices:
            known = " or ".join(f"'{each}'" for each in choices)
            raise SettingsError(f"emulator settings: {name} is '{value}'. Use {known}.")


AnySettings = TypeVar("AnySettings", bound=Settings)


def user_folder() -> Path:
    """The folder that has everything of this user."""
    return Path(os.environ.get("MICROCLUSTER_HOME") or "~/.microcluster").expanduser().absolute()


def load_settings(kind: type[AnySettings], state: Path, overrides: dict[str, object]) -> AnySettings:
    """Read an account's settings; ``overrides`` that are None do not count."""
    state = state.expanduser().resolve()
    values = _from_file(kind, state / SETTINGS_FILE)
    settings = kind(state=state, **values | {key: value for key, value in overrides.items() if value is not None})
    settings.check()
    return settings


def _from_file(kind: type[Settings], path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    try:
        values = tomllib.loads(path.read_text())
    except tomllib.TOMLDecodeError as broken:
        raise SettingsError(f"Reading {path}: {broken}. Correct or remove the file.") from broken
    unknown = sorted(values.keys() - {each.name for each in dataclasses.fields(kind)} | values.keys() & {"state"})
    if unknown:
        raise SettingsError(f"Reading {path}: unknown settings {', '.join(unknown)}. Remove them from the file.")
    if "private_subnets" in values:
        values["private_subnets"] = tuple(values["private_subnets"])
    if "faults" in values:
        values["faults"] = _fault_rates(kind, values["faults"], path)
    return values


def _fault_rates(kind: type[Settings], table: dict[str, object], path: Path) -> FaultRates:
    try:
        return kind.FAULT_MODEL.read_rates(table)
    except (FaultInjectionError, TypeError, ValueError, AttributeError) as wrong:
        raise SettingsError(f"Reading {path}: {wrong} Correct the table [faults].") from wrong
