"""The account's key: from the one file that is named, else from the environment."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from microcluster.accounts.shared.key_file import CredentialsError, Place, authority, endpoint, read_settings
from microcluster.core.home import Home
from microcluster.core.key_file import written

VENDOR = "https://api.paperspace.com/v1"
SECTION = "paperspace"
VARIABLE = "PAPERSPACE_API_KEY"
WRITE_ANEW = f"Write it anew: the key alone, or a line [{SECTION}], then 'api_key = KEY'."


@dataclass(frozen=True)
class Credentials(Place):
    """The key, and where the API is."""

    api_key: str = field(repr=False)
    endpoint: str = VENDOR
    authority: str | None = None
    """The file of the authority that signed the endpoint's certificate; None for the public ones."""


def load(key_file: str | None, exported: Mapping[str, str] = os.environ) -> Credentials:
    """Read the key; with a file named, that file alone counts, so that no exported key reaches another account.

    Raises:
        CredentialsError: there is none, or it cannot be one.
    """
    if not key_file:
        return _checked(written({"api_key": exported.get(VARIABLE)}), VARIABLE)
    path = Home.of().expand(key_file)
    return _checked(read_settings(path, SECTION, WRITE_ANEW, "python -m emulator start paperspace"), str(path))


def _checked(settings: Mapping[str, str], source: str) -> Credentials:
    key = settings.get("api_key")
    if key is None:
        raise CredentialsError(
            f"looking for the account's key in {source}: none found. Put it into a 0600 file and name that in "
            f"paperspace:apiKeyFile, or export {VARIABLE}."
        )
    if not key.isascii() or not key.isprintable() or " " in key:
        raise CredentialsError(
            f"looking for the account's key in {source}: it has characters that no key has. {WRITE_ANEW}"
        )
    return Credentials(key, endpoint(settings, source, VENDOR).rstrip("/"), authority(settings, source))
