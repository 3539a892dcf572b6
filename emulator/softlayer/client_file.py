"""The file from which the official client knows where the account is and how to log in."""

from __future__ import annotations

import configparser
import os
import urllib.parse
from pathlib import Path

from emulator.settings import Settings
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
        "proxy =",  # One in ~/.softlayer must not lead away from this machine.
        *authority,
    ]
    path = settings.state / CONFIG_FILE
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write("\n".join(lines) + "\n")
    return path


def served_at(settings: Settings) -> str:
    """The address, without a path, at which the last server of this account said it listens."""
    parser = configparser.RawConfigParser()
    try:
        parser.read(settings.state / CONFIG_FILE)
    except (configparser.Error, UnicodeDecodeError):
        parser.clear()  # Not our file any more; the next start writes it anew.
    endpoint = parser.get("softlayer", "endpoint_url", fallback=settings.endpoint)
    parts = urllib.parse.urlsplit(endpoint)
    return f"{parts.scheme}://{parts.netloc}"
