"""Public host keys: OpenSSH's text formats, and those that the user trusts, stored beside the stack's keys by guest id."""

import base64
import json
from pathlib import Path

import paramiko

from microcluster.core.files import write_whole
from microcluster.remote.errors import RemoteError

RECORD = "trusted_hosts.json"


def parse(line: str) -> paramiko.PKey:
    """Parse a line such as ``ssh-ed25519 AAAA...``."""
    kind, encoded = line.split()[:2]
    return paramiko.PKey.from_type_string(kind, base64.b64decode(encoded))


def line(key: paramiko.PKey) -> str:
    """Return a key as a line."""
    return f"{key.get_name()} {key.get_base64()}"


def fingerprint(line: str) -> str:
    """Return type and SHA-256 of a key, as OpenSSH prints them."""
    key = parse(line)
    return f"{key.get_name()} {key.fingerprint}"


def trusted_key(key_file: str, guest_id: str) -> str | None:
    """Return the recorded host key of a guest, "ssh-ed25519 AAAA...", or None."""
    return _read(_record_beside(key_file)).get(guest_id)


def trust(key_file: str, guest_id: str, key: str) -> None:
    """Record ``key`` for a guest; from now on it is pinned instead of the ordered one."""
    path = _record_beside(key_file)
    known = {**_read(path), guest_id: key}
    write_whole(path, json.dumps(known, indent=2, sort_keys=True) + "\n", 0o600)


def _record_beside(key_file: str) -> Path:
    return Path(key_file).parent / RECORD


def _read(path: Path) -> dict[str, str]:
    try:
        return dict(json.loads(path.read_text()))
    except FileNotFoundError:
        return {}
    except (ValueError, TypeError) as error:
        raise RemoteError(
            f"reading the trusted host keys in {path}: {error}. Remove it, then fab trust again."
        ) from error
