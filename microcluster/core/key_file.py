"""Files with keys: whose they are, who may read and change them, and what may stand in them."""

import configparser
import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path

LARGEST_BYTES = 16 * 1024
PRIVATE_KEY = re.compile("PRIVATE KEY-----|PuTTY-User-Key-File")
"""Begin of private key files of OpenSSH, OpenSSL and PuTTY."""
KEY = re.compile("[!-~]+")
"""Pattern of every service's keys: ASCII without blanks."""
SETTING = "api_key"


class KeyFileError(Exception):
    """A file holds no usable key; the text says why and what to do, and never quotes the file."""


def settings_in(path: Path, section: str, write_anew: str, *, key_alone: bool = True) -> dict[str, str]:
    """Read a section without what is empty; a file of one word has the key alone.

    Args:
        write_anew: says what the file has to look like.
        key_alone: whether a key alone belongs to this section.

    Raises:
        KeyFileError: it cannot be read, others may change it or read the key in it, or it is no file of a key.
    """
    parser = configparser.RawConfigParser(allow_no_value=True)
    text, mode = _read(path, write_anew)
    if PRIVATE_KEY.search(text):
        raise KeyFileError("it holds a private key, which no service gets. Name the file of the service's own key.")
    is_alone = len(text.split()) == 1 and not text.strip().startswith("[")
    try:
        parser.read_string(f"[{section if key_alone else 'another'}]\n{SETTING} = {text.strip()}" if is_alone else text)
    except (configparser.Error, ValueError):
        # The parser's own text quotes the line, which may hold the key.
        raise KeyFileError(f"not a [{section}] file. {write_anew}") from None
    settings = written(parser[section]) if parser.has_section(section) else {}
    if SETTING in settings and mode & 0o077:
        raise KeyFileError(f"others on this computer may read it. Run 'chmod 600 {path}'.")
    if not KEY.fullmatch(settings.get(SETTING, "none")):
        raise KeyFileError(f"its key has characters that no key has. {write_anew}")
    return settings


def written(settings: Mapping[str, str | None]) -> dict[str, str]:
    """Leave out what is empty."""
    return {name: value.strip() for name, value in settings.items() if value and value.strip()}


def _read(path: Path, write_anew: str) -> tuple[str, int]:
    """Read a file and its mode by one descriptor, so that both are the same file's; a pipe makes nobody wait."""
    try:
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            status, content = os.fstat(file.fileno()), file.read(LARGEST_BYTES + 1) or b""
        text = content.decode()
    except FileNotFoundError:
        raise KeyFileError(f"the file does not exist. {write_anew}") from None
    except OSError as error:
        raise KeyFileError(f"{error.strerror}. Check the file.") from None
    except UnicodeDecodeError:
        raise KeyFileError(f"it is no text. {write_anew}") from None
    if not stat.S_ISREG(status.st_mode) or len(content) > LARGEST_BYTES:
        raise KeyFileError(f"it is no regular file of at most {LARGEST_BYTES:,} bytes. Name the file of a key.")
    if status.st_uid not in (os.geteuid(), 0, Path.home().stat().st_uid):  # Root may work in the home of a person.
        raise KeyFileError(f"it belongs to another user ({status.st_uid}). Name a file of your own.")
    if status.st_mode & 0o022:
        raise KeyFileError(f"others on this computer may change it. Run 'chmod 600 {path}'.")
    return text, status.st_mode
