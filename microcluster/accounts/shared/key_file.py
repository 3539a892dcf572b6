"""The file of an account's key: where it says the API is, and who signed its certificate."""

import ipaddress
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from microcluster.accounts.shared.errors import ProviderError
from microcluster.core.home import Home
from microcluster.core.key_file import KeyFileError, settings_in


class CredentialsError(ProviderError):
    """No usable key was found; the sentence names the file and never what stands in it."""


class Place:
    """Endpoint of an account's API."""

    endpoint: str

    @property
    def is_local(self) -> bool:
        """Tell whether the endpoint is this machine; then no proxy and no ``.netrc`` is asked."""
        return _is_loopback(urlsplit(self.endpoint).hostname or "")


def read_settings(path: Path, section: str, write_anew: str, start: str) -> dict[str, str]:
    """Read the section of a key's file.

    Args:
        write_anew: says what the file has to look like.
        start: the command that starts the account and writes the file, if it is one on this computer.

    Raises:
        CredentialsError: it cannot be read, or others on this computer may read the key in it.
    """
    try:
        return settings_in(path, section, f"{write_anew} An account on this computer writes it itself: '{start}'.")
    except KeyFileError as error:
        raise CredentialsError(f"reading the account's key from {path}: {error}") from None


def endpoint(settings: Mapping[str, str], source: str, public: str) -> str:
    """Read ``endpoint_url``.

    Args:
        public: the vendor's own address, which counts where none is named.

    Raises:
        CredentialsError: it is no address, or holds more than one, or the key would go there for everybody to read.
    """
    text = settings.get("endpoint_url", public)
    try:
        address = urlsplit(text)
        is_address = address.scheme in ("http", "https") and bool(address.hostname) and address.port != 0
        is_address = is_address and not (address.username or address.password or address.query or address.fragment)
    except ValueError:
        is_address = False
    if not is_address or not text.isprintable():
        raise CredentialsError(
            f"reading endpoint_url from {source}: not the address of an API, like {public}. Correct the line, or remove it."
        )
    if address.scheme == "http" and not _is_loopback(address.hostname):
        raise CredentialsError(
            f"reading endpoint_url from {source}: an http address outside this computer, where the key could be read on its "
            "way; nothing was sent. Write https instead."
        )
    return text


def _is_loopback(host: str) -> bool:
    """Tell whether a host is this machine; a name that begins with 127 is none."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def authority(settings: Mapping[str, str], source: str) -> str | None:
    """Read ``verify``: nobody sends a key to an endpoint that cannot prove who it is.

    Raises:
        CredentialsError: it names no file, or asks for no proof.
    """
    text = settings.get("verify", "true")
    if text.lower() == "true":
        return None
    path = Home.of().expand(text)
    if text.lower() == "false" or not path.is_file():
        raise CredentialsError(
            f"reading verify from {source}: neither True nor the file of a certificate authority. "
            "Remove the line, or name the file of the authority that signed the endpoint's certificate."
        )
    return str(path)
