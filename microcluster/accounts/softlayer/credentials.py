"""The account's key: from the one file that is named, else from where the official client looks."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import SoftLayer

from microcluster.accounts.shared.key_file import CredentialsError, Place, authority, endpoint, read_settings
from microcluster.core.home import Home
from microcluster.core.key_file import written

CALL_TIMEOUT_S = 60.0
"""Longest wait for an answer; a call without a limit hangs a deployment for good when one packet is lost. Orders have more."""
SECTION = "softlayer"
USUAL_FILES = ("/etc/softlayer.conf", "~/.softlayer")
"""Files in which the official client looks for credentials; a later file wins."""
WELL_FORMED = {"username": re.compile("[!-<>-~]+"), "api_key": re.compile("[!-~]+")}
"""Patterns of user name and key: ASCII without blanks; a user name with an equals sign would hold a second setting."""
KEY_LIKE = re.compile(r"[0-9a-f]{32,}", re.IGNORECASE)
"""The vendor's keys are 64 hexadecimal digits; no user has such a name."""
IAM_USER = "apikey"
"""The user name that goes with a key of IBM Cloud; as a key, it stands in the other's place."""
WRITE_ANEW = "Write it anew: a line [softlayer], then lines like 'username = NAME' and 'api_key = KEY'."


@dataclass(frozen=True)
class Credentials(Place):
    """User, key and endpoint of the API."""

    username: str
    api_key: str = field(repr=False)
    endpoint: str
    timeout_s: float
    proxy: str | None = field(default=None, repr=False)
    authority: str | None = None
    """The file of the authority that signed the endpoint's certificate; None for the public ones."""


def load(config_file: str | None, exported: Mapping[str, str] = os.environ) -> Credentials:
    """Read the key; with a file named, that file alone counts, so that no exported key reaches another account."""
    if config_file:
        path = Home.of().expand(config_file)
        return _checked(_settings_in(path), str(path))
    settings: dict[str, str] = {}
    paths = [path for path in (Path(each).expanduser() for each in USUAL_FILES) if path.exists()]
    for path in paths:
        settings |= _settings_in(path)
    settings |= written({"username": exported.get("SL_USERNAME"), "api_key": exported.get("SL_API_KEY")})
    if exported.get("https_proxy"):
        settings.pop("proxy", None)  # As with the official client, the exported one goes before the file's.
    return _checked(settings, "SL_USERNAME and SL_API_KEY or " + (str(paths[-1]) if paths else "~/.softlayer"))


def _settings_in(path: Path) -> dict[str, str]:
    return read_settings(path, SECTION, WRITE_ANEW, "python -m emulator start")


def _checked(settings: Mapping[str, str], source: str) -> Credentials:
    missing = [name for name in ("username", "api_key") if name not in settings]
    if missing:
        raise CredentialsError(
            f"looking for the account's key in {source}: {' and '.join(missing)} not found. "
            "Put both into a 0600 file and name it in softlayer:configFile, or export SL_USERNAME and SL_API_KEY."
        )
    odd = [name for name, pattern in WELL_FORMED.items() if not pattern.fullmatch(settings[name])]
    if KEY_LIKE.search(settings["username"]) or settings["api_key"] == IAM_USER:
        odd.append("username")
    if odd:
        raise CredentialsError(
            f"looking for the account's key in {source}: {' and '.join(odd)} not as the vendor writes it, "
            f"perhaps both in one line, or one for the other. {WRITE_ANEW}"
        )
    return Credentials(
        username=settings["username"],
        api_key=settings["api_key"],
        endpoint=endpoint(settings, source, SoftLayer.API_PUBLIC_ENDPOINT),
        timeout_s=_timeout(settings.get("timeout")),
        proxy=settings.get("proxy"),
        authority=authority(settings, source),
    )


def _timeout(text: str | None) -> float:
    try:
        seconds = float(text or 0)
    except ValueError:
        seconds = 0
    return min(seconds, CALL_TIMEOUT_S) if seconds > 0 else CALL_TIMEOUT_S
