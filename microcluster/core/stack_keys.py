"""The ssh keys of each stack: made once by set-up, made anew only between two rentals, kept after a destroy."""

import os
from pathlib import Path

from cryptography.hazmat.primitives import serialization

from microcluster.core.files import write_whole
from microcluster.core.home import MARK_FILE, PRIVATE_DIR, STACK_FILE, Home, KeysError, Owner, bears, mark_of, stack_of
from microcluster.core.ssh_key import KeyPair, public_line

ADMIN = "id_ed25519"
RANK = "rank_ed25519"
"""The key for ssh between the ranks."""
WAITING = f"{ADMIN}.next"
"""Next ADMIN key; it is used once nothing is rented under the present one."""


def ensure(folder: Path, stack: str) -> tuple[str, ...]:
    """Make the stack's missing key pairs and its mark in ``folder``; return the names of the pairs.

    Raises:
        KeysError: a file of them is damaged.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=PRIVATE_DIR)
    if stack_of(folder) != stack:
        give(folder, stack)
    made = tuple(name for name in (ADMIN, RANK) if _ensure_pair(folder / name, stack))
    _publish(folder / MARK_FILE, f"{mark_of(folder)}\n".encode(), 0o600)
    return made


def give(folder: Path, stack: str) -> None:
    """Write down that a folder belongs to a stack, and that no other folder does."""
    write_whole(folder / STACK_FILE, f"{folder.name} {stack}\n".encode(), 0o600)
    for other in folder.parent.glob(f"*/{STACK_FILE}"):
        if other.parent != folder and stack_of(other.parent) == stack:
            other.unlink()


def follow(owner: Owner, stack: str) -> None:
    """Move the owner's key folder to its stack's new name, if the stack was renamed and has no folder."""
    folder = Home.of().keys / owner.stack
    if bears(folder, owner.mark) and not Home.of().folder_of(stack).exists():
        give(folder, stack)


def prepare(folder: Path, stack: str) -> bool:
    """Make the key that the stack will have next; return whether one that was never used had to make way."""
    ensure(folder, stack)
    was_waiting = (folder / WAITING).exists()
    write_whole(folder / WAITING, KeyPair.fresh().private, 0o600)
    return was_waiting


def renew(owner: Owner) -> bool:
    """Make a rank key for the next rental, and use the key that waits, if one does; return whether it did.

    Only for when nothing is rented under the mark. Another folder than that of the mark is left alone.
    """
    folder = Home.of().keys / owner.stack
    if not folder.exists() or mark_of(folder) != owner.mark:
        return False
    _replace(folder / RANK, KeyPair.fresh().private.encode(), owner.stack)
    waiting = folder / WAITING
    if not waiting.exists():
        return False
    _replace(folder / ADMIN, waiting.read_bytes(), owner.stack)
    waiting.unlink()
    return True


def _replace(private: Path, content: bytes, stack: str) -> None:
    # Without its public part, `ensure` and whoever orders see that a crash came between.
    Path(f"{private}.pub").unlink(missing_ok=True)
    write_whole(private, content, 0o600)
    _ensure_pair(private, stack)


def _ensure_pair(private: Path, stack: str) -> bool:
    is_new = not private.exists() and _publish(private, KeyPair.fresh().private.encode(), 0o600)
    public = Path(f"{private}.pub")
    if not public.exists():
        _publish(public, f"{_public_line(private)} microcluster-{stack}\n".encode(), 0o644)
    return is_new


def _public_line(private: Path) -> str:
    try:
        key = serialization.load_ssh_private_key(private.read_bytes(), password=None)
    except (ValueError, TypeError) as broken:
        raise KeysError(
            f"Reading the key {private}: {broken}. Machines may be rented with it, so it is not replaced. "
            "Restore it from a copy; if nothing was ever ordered with it, remove it and repeat."
        ) from broken
    return public_line(key)


def _publish(path: Path, content: bytes, mode: int) -> bool:
    """Write ``content`` to ``path`` atomically unless the file exists; return whether it was written."""
    scratch = path.with_name(f".{path.name}.{os.getpid()}.new")
    write_whole(scratch, content, mode)
    try:
        os.link(scratch, path)
    except FileExistsError:
        return False
    finally:
        scratch.unlink()
    return True
