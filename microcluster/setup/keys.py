"""The ssh keys of each stack: made once by set-up, never overwritten, kept after a destroy."""

import os
import tempfile
from contextlib import suppress
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from core.home import PRIVATE_DIR
from microcluster.setup.errors import CommandFailed

ADMIN = "id_ed25519"
RANK = "rank_ed25519"
"""The key for ssh between the ranks."""


def ensure(folder: Path, stack: str) -> tuple[str, ...]:
    """Make the stack's missing key pairs in ``folder``; return their names."""
    folder.mkdir(parents=True, exist_ok=True, mode=PRIVATE_DIR)
    return tuple(name for name in (ADMIN, RANK) if _ensure_pair(folder / name, f"microcluster-{stack}"))


def _ensure_pair(private: Path, comment: str) -> bool:
    new = not private.exists() and _publish(private, _new_private_key(), 0o600)
    public = private.with_name(f"{private.name}.pub")
    if not public.exists():
        _publish(public, _public_line(private, comment), 0o644)
    return new


def _new_private_key() -> bytes:
    return Ed25519PrivateKey.generate().private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
    )


def _public_line(private: Path, comment: str) -> bytes:
    try:
        key = serialization.load_ssh_private_key(private.read_bytes(), password=None)
    except (ValueError, TypeError) as broken:
        raise CommandFailed(
            f"Reading the key {private}: {broken}. It marks the orders made with it, so it is not replaced. "
            "Restore it from a copy; if nothing was ever ordered with it, remove it and repeat."
        ) from broken
    line = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    return line + f" {comment}\n".encode()


def _publish(path: Path, content: bytes, mode: int) -> bool:
    """Write ``content`` to ``path`` atomically unless the file exists; return whether it was written."""
    handle, scratch = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.chmod(scratch, mode)
        with suppress(FileExistsError):
            os.link(scratch, path)
            return True
        return False
    finally:
        os.unlink(scratch)
