"""The file with the API key of the account on this computer, and where the account is."""

from pathlib import Path

from emulator.machines.host_tools import write_private
from emulator.paperspace.settings import Settings
from emulator.tls import AUTHORITY_FILE

KEY_FILE = "paperspace-api-key"


def write_key_file(settings: Settings) -> Path:
    """Write the key, readable by its owner alone."""
    path = settings.state / KEY_FILE
    lines = ["[paperspace]", f"api_key = {settings.api_key}", f"endpoint_url = {settings.api}"]
    lines += [f"verify = {settings.state / AUTHORITY_FILE}"] if settings.tls else []
    write_private(path, "\n".join(lines) + "\n")
    return path
