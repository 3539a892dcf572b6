"""The registry of emulated vendors: the only module here that knows which ones there are."""

from collections.abc import Mapping
from pathlib import Path

from emulator import settings
from emulator.paperspace.vendor import PAPERSPACE
from emulator.pbs.site import PBS
from emulator.settings import Settings
from emulator.softlayer.vendor import SOFTLAYER
from emulator.vendor import Vendor

DEFAULT = "softlayer"
VENDORS: Mapping[str, Vendor] = {DEFAULT: SOFTLAYER, "paperspace": PAPERSPACE, "pbs": PBS}


def default_state(vendor: str = DEFAULT) -> Path:
    """The folder of a vendor's account when no other one is named."""
    return settings.user_folder() / VENDORS[vendor].folder


def load_settings(state: Path | None, overrides: dict[str, object], vendor: str = DEFAULT) -> Settings:
    """Read the settings of a vendor's account; ``overrides`` that are None do not count."""
    return settings.load_settings(VENDORS[vendor].settings, state or default_state(vendor), overrides)
