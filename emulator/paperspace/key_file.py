"""The file with the API key of the account on this computer."""

from __future__ import annotations

import os
from pathlib import Path

from emulator.paperspace.settings import Settings

KEY_FILE = "paperspace-api-key"


def write_key_file(settings: Settings) -> Path:
    """Write the key, readable by its owner alone."""
    path = settings.state / KEY_FILE
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(f"{settings.api_key}\n")
    return path
