"""The file in the official client's format: where the account is, and how to log in."""

from pathlib import Path

from emulator.machines.host_tools import write_private
from emulator.softlayer.settings import Settings
from emulator.tls import AUTHORITY_FILE

CONFIG_FILE = "softlayer.conf"
TIMEOUT_S = 60


def write_client_file(settings: Settings) -> Path:
    """Write the client's file, readable by its owner alone."""
    authority = [f"verify = {settings.state / AUTHORITY_FILE}"] if settings.tls else []
    lines = [
        "[softlayer]",
        f"username = {settings.username}",
        f"api_key = {settings.api_key}",
        f"endpoint_url = {settings.endpoint}",
        f"timeout = {TIMEOUT_S}",
        "proxy =",  # Without this line a proxy in ~/.softlayer would be used.
        *authority,
    ]
    path = settings.state / CONFIG_FILE
    write_private(path, "\n".join(lines) + "\n")
    return path
