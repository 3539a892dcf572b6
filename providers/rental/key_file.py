"""The file of an account's key: who may read it, where it says the API is, and who signed its certificate."""

import configparser
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from core.home import Home
from providers.rental.errors import ProviderError

OTHERS = 0o077


class CredentialsError(ProviderError):
    """No usable key was found; the sentence names the file and never what stands in it."""


class Place:
    """Where an account's API is."""

    endpoint: str

    @property
    def is_local(self) -> bool:
        """Tell whether the endpoint is this machine; then no proxy and no ``.netrc`` is asked."""
        host = urlsplit(self.endpoint).hostname or ""
        return host in ("localhost", "::1") or host.startswith("127.")


def read_settings(path: Path, section: str, write_anew: str, start: str) -> dict[str, str]:
    """Read the section of a key's file, without what is empty; one word alone is the key.

    Args:
        write_anew: says what the file has to look like.
        start: the command that starts the account and writes the file, if it is one on this computer.

    Raises:
        CredentialsError: it cannot be read, or others on this computer may read the key in it.
    """
    doing, parser = f"reading the account's key from {path}", configparser.RawConfigParser(allow_no_value=True)
    try:
        text = path.read_text(encoding="utf-8")
        is_key = len(text.split()) == 1 and not text.strip().startswith("[")
        parser.read_string(f"[{section}]\napi_key = {text.strip()}" if is_key else text)
    except FileNotFoundError:
        why = f"the file does not exist. If this is the local account, start it with '{start}'"
        raise CredentialsError(f"{doing}: {why}.") from None
    except OSError as error:
        raise CredentialsError(f"{doing}: {error.strerror}. Check the file.") from None
    except (configparser.Error, ValueError):
        # The parser's own text quotes the line, which may hold the key.
        raise CredentialsError(f"{doing}: not a [{section}] file. {write_anew}") from None
    found = written(parser[section]) if parser.has_section(section) else {}
    if "api_key" in found and path.stat().st_mode & OTHERS:
        raise CredentialsError(f"{doing}: others on this computer may read it. Run 'chmod 600 {path}'.")
    return found


def written(settings: Mapping[str, str | None]) -> dict[str, str]:
    """Leave out what is empty."""
    return {name: value.strip() for name, value in settings.items() if value and value.strip()}


def endpoint(settings: Mapping[str, str], source: str, public: str) -> str:
    """Read ``endpoint_url``.

    Args:
        public: the vendor's own address, which counts where none is named.

    Raises:
        CredentialsError: it is no address, or holds more than one.
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
    return text


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
