"""The registry of emulated vendors: the only module here that knows which ones there are."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from emulator import settings
from emulator.settings import Settings
from emulator.softlayer.vendor import SOFTLAYER
from emulator.vendor import Vendor

DEFAULT = "softlayer"
VENDORS: Mapping[str, Vendor] = {DEFAULT: SOFTLAYER}


def load_settings(state: Path, overrides: dict[str, object], vendor: str = DEFAULT) -> Settings:
    """Read the settings of a vendor's account; ``overrides`` that are None do not count."""
    return settings.load_settings(VENDORS[vendor].settings, state, overrides)
