"""The file from which the official client knows where the account is and how to log in."""

from __future__ import annotations

import configparser
import os
import urllib.parse
from pathlib import Path

from .settings import Settings

CONFIG_FILE = "softlayer.conf"
TIMEOUT_S = 60


def write_client_file(settings: Settings) -> Path:
    """Write the client's file, readable by its owner alone."""
    lines = [
        "[softlayer]",
        f"username = {settings.username}",
        f"api_key = {settings.api_key}",
        f"endpoint_url = {settings.endpoint}",
        f"timeout = {TIMEOUT_S}",
    ]
    path = settings.state / CONFIG_FILE
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write("\n".join(lines) + "\n")
    return path


def served_port(settings: Settings) -> int:
    """The port that the last server of this account said it listens on."""
    parser = configparser.ConfigParser(interpolation=None)
    parser.read(settings.state / CONFIG_FILE)
    endpoint = parser.get("softlayer", "endpoint_url", fallback=settings.endpoint)
    return urllib.parse.urlsplit(endpoint).port or settings.port
