"""The registry of emulated vendors, the only module here that knows which ones there are, and the settings of their accounts."""

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from emulator.paperspace.vendor import PAPERSPACE
from emulator.queue.site import QUEUE
from emulator.shared.settings import SETTINGS_FILE, Settings, UsageError
from emulator.shared.validation import problems_of
from emulator.shared.vendor import Vendor
from emulator.softlayer.vendor import SOFTLAYER

DEFAULT = "softlayer"
VENDORS: Mapping[str, Vendor] = {DEFAULT: SOFTLAYER, "paperspace": PAPERSPACE, "queue": QUEUE}


def default_state(vendor: str = DEFAULT) -> Path:
    """The folder of a vendor's account when no other one is named: in the one that has everything of this user."""
    everything = Path(os.environ.get("MICROCLUSTER_HOME") or "~/.microcluster").expanduser().absolute()
    return everything / VENDORS[vendor].folder


def load_settings(state: Path | None, overrides: Mapping[str, object], vendor: str = DEFAULT) -> Settings:
    """Read the settings of a vendor's account; ``overrides`` that are None do not count."""
    state = (state or default_state(vendor)).expanduser().resolve()
    path = state / SETTINGS_FILE
    settings = {name: value for name, value in overrides.items() if value is not None}
    try:
        values = tomllib.loads(path.read_text()) if path.exists() else {}
        values.pop("api_key", None)  # An older version took the key from here; now each account makes its own.
        return VENDORS[vendor].settings(state=state, **values | settings)
    except ValidationError as wrong:
        raise UsageError(f"Reading {path} and the command line: {problems_of(wrong)}") from wrong
    except (tomllib.TOMLDecodeError, TypeError) as broken:
        raise UsageError(f"Reading {path}: {broken}. Correct or remove the file.") from broken
