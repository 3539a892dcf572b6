"""The account's key: from the one file that is named, else from the environment."""

import configparser
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from core.home import Home
from providers.rental.key_file import CredentialsError, authority, check_private, endpoint

VENDOR = "https://api.paperspace.com/v1"
SECTION = "paperspace"
VARIABLE = "PAPERSPACE_API_KEY"
WRITE_ANEW = f"Write it anew: the key alone, or a line [{SECTION}], then 'api_key = KEY'."


@dataclass(frozen=True)
class Credentials:
    """The key, and where the API is."""

    api_key: str = field(repr=False)
    endpoint: str = VENDOR
    authority: str | None = None
    """The file of the authority that signed the endpoint's certificate; None for the public ones."""

    @property
    def is_local(self) -> bool:
        """Tell whether the endpoint is this machine; then no proxy is asked."""
        host = urlsplit(self.endpoint).hostname or ""
        return host in ("localhost", "::1") or host.startswith("127.")


def load(key_file: str | None, exported: Mapping[str, str] = os.environ) -> Credentials:
    """Read the key; with a file named, that file alone counts, so that no exported key reaches another account.

    Raises:
        CredentialsError: there is none, or it cannot be one.
    """
    if not key_file:
        return _checked({"api_key": exported.get(VARIABLE)}, VARIABLE)
    path = Home.of().expand(key_file)
    try:
        text = path.read_text(encoding="utf-8")
        check_private(path)
    except FileNotFoundError:
        raise CredentialsError(
            f"reading the account's key from {path}: the file does not exist. "
            "If this is the local account, start it with 'python -m emulator start paperspace'."
        ) from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a text"
        raise CredentialsError(f"reading the account's key from {path}: {reason}. {WRITE_ANEW}") from None
    return _checked(_settings(text, path), str(path))


def _settings(text: str, path: Path) -> dict[str, str | None]:
    words = text.split()
    if len(words) == 1 and not words[0].startswith("["):
        return {"api_key": words[0]}
    parser = configparser.RawConfigParser(allow_no_value=True)
    try:
        parser.read_string(text)
    except (configparser.Error, ValueError):
        # The parser's own text quotes the line, which may hold the key.
        raise CredentialsError(f"reading the account's key from {path}: not a [{SECTION}] file. {WRITE_ANEW}") from None
    return dict(parser[SECTION]) if parser.has_section(SECTION) else {}


def _checked(settings: Mapping[str, str | None], source: str) -> Credentials:
    values = {name: (value or "").strip() for name, value in settings.items()}
    key = values.get("api_key") or ""
    if not key:
        raise CredentialsError(
            f"looking for the account's key in {source}: none found. Put it into a 0600 file and name that in "
            f"paperspace:apiKeyFile, or export {VARIABLE}."
        )
    if not key.isascii() or not key.isprintable() or " " in key:
        raise CredentialsError(
            f"looking for the account's key in {source}: it has characters that no key has. {WRITE_ANEW}"
        )
    address = endpoint(values.get("endpoint_url") or VENDOR, source, VENDOR)
    return Credentials(key, address.rstrip("/"), authority(values.get("verify") or "", source))
