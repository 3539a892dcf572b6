"""Host keys trusted by the user: stored beside the stack's keys, by guest id."""

import json
import os
from pathlib import Path

from microcluster.remote.errors import RemoteError
from microcluster.remote.host import Host

RECORD = "trusted_hosts.json"


def trusted_key(key_file: str, guest_id: str) -> str | None:
    """Return the recorded host key of a guest, "ssh-ed25519 AAAA...", or None."""
    return _read(_record_beside(key_file)).get(guest_id)


def trust(host: Host, key: str) -> None:
    """Record ``key`` for the guest; from now on it is pinned instead of the ordered one."""
    path = _record_beside(host.key_file)
    known = {**_read(path), host.facts.guest_id: key}
    new = path.with_name(f"{path.name}.{os.getpid()}")
    new.touch(mode=0o600)
    new.write_text(json.dumps(known, indent=2, sort_keys=True) + "\n")
    new.replace(path)


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
