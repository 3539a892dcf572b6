"""The account's key: from the one file that is named, else from where the official client looks."""

from __future__ import annotations

import configparser
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from string import Template
from urllib.parse import urlsplit

import SoftLayer
import SoftLayer.config

from providers.softlayer.errors import ProviderError
from providers.softlayer.home import home

CALL_TIMEOUT_S = 60.0
"""Longest wait for one answer; a call without a limit hangs a deployment for good when one packet is lost."""


class CredentialsError(ProviderError):
    """No usable key was found."""


@dataclass(frozen=True)
class Credentials:
    """Who we are to the API, and where it is."""

    username: str
    api_key: str = field(repr=False)
    endpoint: str
    timeout_s: float

    @property
    def is_local(self) -> bool:
        """Tell whether the endpoint is this machine; then no proxy and no ``.netrc`` is asked."""
        host = urlsplit(self.endpoint).hostname or ""
        return host in ("localhost", "::1") or host.startswith("127.")


def load(config_file: str | None, exported: Mapping[str, str] = os.environ) -> Credentials:
    """Read the key; with a file named, that file alone counts, so that no exported key reaches another account."""
    if config_file:
        path = expand(config_file)
        return _checked(_file_settings(path), str(path))
    named = {"username": exported.get("SL_USERNAME"), "api_key": exported.get("SL_API_KEY")}
    return _checked(SoftLayer.config.get_client_settings(**named), "SL_USERNAME and SL_API_KEY or ~/.softlayer")


def expand(path: str) -> Path:
    """Return a path of a stack file, which may begin with ``~/`` or ``$MICROCLUSTER_HOME/``, as the program reads it too."""
    named = Template(path).safe_substitute(HOME=str(Path.home()), MICROCLUSTER_HOME=str(home()))
    return Path(named).expanduser().absolute()


def _file_settings(path: Path) -> dict[str, str | None]:
    parser = configparser.RawConfigParser(allow_no_value=True)
    try:
        parser.read_string(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise CredentialsError(
            f"reading the account's key from {path}: the file does not exist. "
            "If this is the local account, start it with 'python -m emulator start'."
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise CredentialsError(
            f"reading the account's key from {path}: {type(error).__name__}. Check the file."
        ) from error
    except configparser.Error:
        # The parser's own text quotes the line, which may hold the key.
        raise CredentialsError(
            f"reading the account's key from {path}: not a [softlayer] file. Write it anew."
        ) from None
    return dict(parser["softlayer"]) if parser.has_section("softlayer") else {}


def _checked(settings: dict[str, str | None], source: str) -> Credentials:
    missing = [name for name in ("username", "api_key") if not settings.get(name)]
    if missing:
        raise CredentialsError(
            f"looking for the account's key in {source}: {' and '.join(missing)} not found. "
            "Put both into a 0600 file and name it in softlayer:configFile, or export SL_USERNAME and SL_API_KEY."
        )
    return Credentials(
        username=str(settings["username"]).strip(),
        api_key=str(settings["api_key"]).strip(),
        endpoint=str(settings.get("endpoint_url") or SoftLayer.API_PUBLIC_ENDPOINT).strip(),
        timeout_s=_timeout(settings.get("timeout")),
    )


def _timeout(text: str | None) -> float:
    try:
        wanted = float(text or 0)
    except ValueError:
        wanted = 0
    return min(wanted, CALL_TIMEOUT_S) if wanted > 0 else CALL_TIMEOUT_S
