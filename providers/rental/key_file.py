"""The file of an account's key: who may read it, where it says the API is, and who signed its certificate."""

from pathlib import Path
from urllib.parse import urlsplit

from core.home import Home
from providers.rental.errors import ProviderError

OTHERS = 0o077


class CredentialsError(ProviderError):
    """No usable key was found; the sentence names the file and never what stands in it."""


def check_private(path: Path) -> None:
    """Refuse a file with a key that others on this computer may read.

    Raises:
        CredentialsError: they may.
    """
    if path.stat().st_mode & OTHERS:
        raise CredentialsError(
            f"reading the account's key from {path}: others on this computer may read it. Run 'chmod 600 {path}'."
        )


def endpoint(text: str, source: str, public: str) -> str:
    """Read ``endpoint_url``.

    Args:
        public: the vendor's own address, as an example.

    Raises:
        CredentialsError: it is no address, or holds more than one.
    """
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
    return text


def authority(text: str, source: str) -> str | None:
    """Read ``verify``: nobody sends a key to an endpoint that cannot prove who it is.

    Raises:
        CredentialsError: it names no file, or asks for no proof.
    """
    if text.lower() in ("", "true"):
        return None
    path = Home.of().expand(text)
    if text.lower() == "false" or not path.is_file():
        raise CredentialsError(
            f"reading verify from {source}: neither True nor the file of a certificate authority. "
            "Remove the line, or name the file of the authority that signed the endpoint's certificate."
        )
    return str(path)
