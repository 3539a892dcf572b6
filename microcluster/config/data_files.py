"""Looking at finished data on this computer: whether every file is there, and what their hashes are, which is remembered."""

from __future__ import annotations

import contextlib
import hashlib
import json
import lzma
import os
import tarfile
import zlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

from microcluster.config.data import Data, DataFile

BROKEN_TAR = (tarfile.TarError, OSError, EOFError, zlib.error, lzma.LZMAError)


def looked_at(data: Data, required: Sequence[str], optional: Sequence[str], memory: Path) -> Data:
    """Return data of this computer with their files; reading 2 GB takes seconds, so ``memory`` keeps what was found.

    Raises:
        ValueError: when they are not there, or not whole.
    """
    path = data.path
    assert path
    if path.is_dir():
        there = [name for name in (*required, *optional) if (path / name).is_file()]
        _refuse_missing(path, set(required) - set(there), "does not hold")
        files = tuple(_file(path / name, memory) for name in sorted(there))
        return replace(data, is_tar=False, files=files)
    if not path.is_file():
        raise ValueError(f"{path} is neither a folder nor a file of this computer")
    known = _known(path, memory)
    if "members" not in known:
        known = _remember(path, memory, members=_members(path))
    _refuse_missing(path, set(required) - set(known["members"]), "is a tar that does not hold")
    return replace(data, files=(_file(path, memory),))


def _refuse_missing(path: Path, missing: set[str], what: str) -> None:
    if missing:
        raise ValueError(f"{path} {what} {', '.join(sorted(missing))}")


def _file(path: Path, memory: Path) -> DataFile:
    known = _known(path, memory)
    if "sha256" not in known:
        with path.open("rb") as content:
            known = _remember(path, memory, sha256=hashlib.file_digest(content, "sha256").hexdigest())
    return DataFile(path.name, path.stat().st_size, known["sha256"])


def _members(path: Path) -> list[str]:
    """Return the names of the plain files of a tar, without their folders."""
    try:
        with tarfile.open(path) as archive:
            return sorted({PurePosixPath(member.name).name for member in archive if member.isfile()})
    except BROKEN_TAR as error:
        raise ValueError(f"{path} is neither a folder nor a whole tar ({error})") from error


def _known(path: Path, memory: Path) -> dict[str, Any]:
    """Return what is remembered of the file as it is now."""
    kept = _read(memory).get(str(path))
    return kept if isinstance(kept, dict) and kept.get("version") == _version(path) else {}


def _remember(path: Path, memory: Path, **facts: Any) -> dict[str, Any]:
    known = {**_known(path, memory), **facts, "version": _version(path)}
    with contextlib.suppress(OSError):  # Then it is looked at again next time.
        memory.parent.mkdir(parents=True, exist_ok=True)
        new = memory.with_name(f"{memory.name}.{os.getpid()}")
        new.write_text(json.dumps({**_read(memory), str(path): known}, indent=1, sort_keys=True))
        new.replace(memory)
    return known


def _read(memory: Path) -> dict[str, Any]:
    try:
        found = json.loads(memory.read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _version(path: Path) -> list[int]:
    """Return what changes when somebody writes to the file."""
    facts = path.stat()
    return [facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns, facts.st_ino]
