"""The settings of one emulated account: defaults here, then DIR/settings.toml, then the command line."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

from emulator.softlayer.fault_injection import BROKEN_TLS, Forecast, WeatherError, read_forecast

SETTINGS_FILE = "settings.toml"
LOOPBACK = "127.0.0.1"
KEPT_S = 3600.0  # of the account's clock: no list lags further behind


class SettingsError(Exception):
    """The settings cannot be used; the message is a full sentence."""


@dataclass(frozen=True)
class Settings:
    """Every field may stand in ``settings.toml`` under the same name, except ``state``.

    Seconds are seconds of the account's own clock: with ``clock_rate`` 600 one real second is ten minutes of rent.
    """

    state: Path
    port: int = 8170
    tls: bool = False  # whether it is served over https; the authority to trust is in authority.pem
    machines: str = "containers"  # or "none": guests without a machine behind them
    clock_rate: float = 1.0
    clock_step_s: float = 0.0  # above 0, each call moves the clock by so much, and real time does not
    clock_start: str = ""  # what the clock shows when the account is new, in ISO 8601 with offset; empty: now
    seed: int = 0  # of the ids and of everything that is drawn by chance
    username: str = "local"
    api_key: str = "local"
    restricted_user: str = ""  # a second user, with the same key, who may do only this:
    restricted_permissions: tuple[str, ...] = ()  # key names, as in users.py
    company: str = "microcluster emulator"
    provisioning_s: float = 10.0
    gap_s: float = 0.5  # of these, between two transactions, when nothing seems to happen; at most half of them
    upgrade_starts_after_s: float = 1.0  # an accepted upgrade shows no transaction for so long
    upgrade_s: float = 5.0
    reclaim_s: float = 5.0
    instance_limit: int = 20
    # "lon04" or "lon04/AC1_16X120X100" to the number of guests that there is room for; what is not named is unlimited.
    capacity: dict[str, int] = field(default_factory=dict)
    # One network per backend router in use; the first router that gets a guest takes the first one.
    private_subnets: tuple[str, ...] = ("10.112.7.0/24", "10.112.8.0/24", "10.112.9.0/24", "10.112.10.0/24")
    # A documentation range, and no more of it than 61 guests need: some networks keep hosts of their own in the rest.
    public_subnet: str = "203.0.113.0/26"
    registry_name: str = "ngc.microcluster.internal"
    registry_port: int = 5000
    boot_workers: int = 4  # machines that boot at the same time
    history: bool = False  # write every call and every event to history.jsonl
    calls_per_second: int = 50  # of the whole account, in real seconds; 0: as many as one likes
    capacity_code: str = "new"  # or "old": the fault for a lack of room as it was called until about 2018
    weather: Forecast = field(default_factory=Forecast)  # the table ``weather``; see weather.py
    never_rate: float = 0.0  # of orders and upgrades that are accepted and then not done
    stuck_rate: float = 0.0  # of transactions that stay in one step for ``stuck_s`` longer
    stuck_s: float = 3600.0
    late_work_rate: float = 0.0  # of guests that get one more transaction, half a minute after they are ready
    approval: str = (
        "auto"  # or "pending": orders of guests and upgrades wait for `python -m emulator approve|refuse ORDER`
    )
    read_lag_s: float = 0.0  # a fresh object cannot be read by its id for so long
    list_lag_s: float = 0.0  # the account's lists show everything so much later: orders as well as cancellations

    @property
    def account_name(self) -> str:
        """The name on every container, network and image of this account."""
        return "acct-" + hashlib.sha256(str(self.state).encode()).hexdigest()[:8]

    @property
    def endpoint(self) -> str:
        """The XML-RPC endpoint on this machine."""
        return f"{'https' if self.tls else 'http'}://{LOOPBACK}:{self.port}/xmlrpc/v3.1/"


def default_state() -> Path:
    """Where the account lives unless told otherwise."""
    home = Path(os.environ.get("MICROCLUSTER_HOME") or "~/.microcluster").expanduser().absolute()
    return home / "emulator"


def load_settings(state: Path, overrides: dict[str, object]) -> Settings:
    """Read the account's settings; ``overrides`` that are None do not count."""
    state = state.expanduser().resolve()
    values = _from_file(state / SETTINGS_FILE) | {key: value for key, value in overrides.items() if value is not None}
    settings = Settings(state=state, **values)
    if settings.machines not in {"containers", "none"}:
        raise SettingsError(f"emulator settings: machines is '{settings.machines}'. Use 'containers' or 'none'.")
    if settings.capacity_code not in {"new", "old"}:
        raise SettingsError(f"emulator settings: capacity_code is '{settings.capacity_code}'. Use 'new' or 'old'.")
    if settings.approval not in {"auto", "pending"}:
        raise SettingsError(f"emulator settings: approval is '{settings.approval}'. Use 'auto' or 'pending'.")
    if settings.weather.has(BROKEN_TLS) and not settings.tls:
        raise SettingsError(f"emulator settings: the weather {BROKEN_TLS} needs TLS. Use tls = true, or --tls.")
    if settings.list_lag_s > KEPT_S:
        raise SettingsError(
            f"emulator settings: list_lag_s is {settings.list_lag_s}. No list lags by more than {KEPT_S:g}."
        )
    if settings.clock_rate <= 0:
        raise SettingsError(f"emulator settings: clock_rate is {settings.clock_rate}. It has to be above 0.")
    if settings.clock_step_s and settings.machines != "none":
        raise SettingsError("emulator settings: with clock_step_s no machine can boot in time. Use machines = 'none'.")
    return settings


def _from_file(path: Path) -> dict[str, object]:
    if not path.exists():
        return {}
    try:
        values = tomllib.loads(path.read_text())
    except tomllib.TOMLDecodeError as broken:
        raise SettingsError(f"Reading {path}: {broken}. Correct or remove the file.") from broken
    known = {each.name: each.type for each in dataclasses.fields(Settings)} | {"state": None}
    unknown = sorted(key for key in values if known.get(key) is None)
    if unknown:
        raise SettingsError(f"Reading {path}: unknown settings {', '.join(unknown)}. Remove them from the file.")
    if "private_subnets" in values:
        values["private_subnets"] = tuple(values["private_subnets"])
    if "weather" in values:
        values["weather"] = _forecast(values["weather"], path)
    return values


def _forecast(table: dict[str, object], path: Path) -> Forecast:
    try:
        return read_forecast(table)
    except (WeatherError, TypeError, ValueError, AttributeError) as wrong:
        raise SettingsError(f"Reading {path}: {wrong} Correct the table [weather].") from wrong
