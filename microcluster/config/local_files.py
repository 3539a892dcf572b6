"""Finished data that a stack file names on this computer, with their hashes."""

import contextlib
import hashlib
import json
import lzma
import re
import tarfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

from microcluster.config.folder_reader import read_tree
from microcluster.core.files import write_whole
from microcluster.jobs.finished_data import Data, SentFile

COMMENT, PINNED = re.compile(r"(^|\s)#.*"), re.compile(r"==[^*]+$|@[0-9a-f]{40}\b|--hash=")
"""Comment and pinned package of a requirements file."""
GB = 10**9
BROKEN_TAR = (tarfile.TarError, OSError, EOFError, zlib.error, lzma.LZMAError)


def unpinned(file: Path) -> tuple[str, ...]:
    """Return the lines of a file of requirements that leave the version open; what stands in files that it names is not looked at.

    Raises:
        ValueError: it is not there, or no text.
    """
    try:
        lines = [COMMENT.sub("", line).strip() for line in file.read_text(encoding="utf-8").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{file} cannot be read: {getattr(error, 'strerror', 'it is no text in UTF-8')}") from error
    return tuple(line for line in lines if line and line[0] not in "-./" and not PINNED.search(line.partition(";")[0]))


def find_files(data: Data, required: Sequence[str], optional: Sequence[str], cache: Path) -> Data:
    """Return data with their files; reading 2 GB takes seconds, so the file ``cache`` keeps the hashes.

    Raises:
        ValueError: they are missing or incomplete.
    """
    path = Path(str(data.path))
    if path.is_dir():
        there = [name for name in (*required, *optional) if (path / name).is_file()]
        _refuse_missing(path, set(required) - set(there), "does not hold")
        files = tuple(_file(path / name, cache) for name in sorted(there))
        return replace(data, is_tar=False, files=files)
    if not path.is_file():
        raise ValueError(f"{path} is neither a folder nor a file of this computer")
    members = _once(path, cache, "members", _members)
    _refuse_missing(path, set(required) - set(members), "is a tar that does not hold")
    return replace(data, files=(_file(path, cache),))


def find_whole(data: Data, disk_gb: int | None, cache: Path) -> Data:
    """Return data that are taken whole, with their folders: a folder's tree, or a tar that was looked through.

    Raises:
        ValueError: they are missing, cannot lie on a machine, or do not fit its disk; each argument is one problem.
    """
    from agent.data import archives  # noqa: PLC0415 - it fetches too, and to load that takes longer than all else of a verb

    path = Path(str(data.path))
    if path.is_dir():
        tree = read_tree(path, is_data=True)
        found_data, needed = replace(data, sha256=tree.id, tree=tree), 2 * tree.bytes
    else:
        needed = 2 * path.stat().st_size + _once(path, cache, "unpacked", archives.bytes_of_all)
        found_data = replace(data, files=(_file(path, cache),))
    if needed > (disk_gb or needed) * GB:
        raise ValueError(
            f"{path} needs {needed / GB:,.1f} GB of disk until the copy there is checked, and the machines have {disk_gb} GB; take larger "
            "disks, or fewer data"
        )
    return found_data


def _refuse_missing(path: Path, missing: set[str], what: str) -> None:
    if missing:
        raise ValueError(f"{path} {what} {', '.join(sorted(missing))}")


def _file(path: Path, cache: Path) -> SentFile:
    return SentFile(path.name, path.stat().st_size, _once(path, cache, "sha256", _sha256))


def _sha256(path: Path) -> str:
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _members(path: Path) -> list[str]:
    """Return the names of a tar's files, without folders."""
    try:
        with tarfile.open(path) as archive:
            return sorted({PurePosixPath(member.name).name for member in archive if member.isfile()})
    except BROKEN_TAR as error:
        raise ValueError(f"{path} is neither a folder nor a whole tar ({error})") from error


def _once(path: Path, cache: Path, name: str, find: Callable[[Path], Any]) -> Any:
    """Return a fact of a file, which is kept until the file changes."""
    cached, version = _read(cache), _version(path)
    facts = cached.get(str(path))
    if not isinstance(facts, dict) or facts.get("version") != version:
        facts = {"version": version}
    if name not in facts:
        facts[name] = find(path)
        with contextlib.suppress(OSError):  # Without the cache the file is read again next time.
            cache.parent.mkdir(parents=True, exist_ok=True)
            write_whole(cache, json.dumps({**cached, str(path): facts}, indent=1, sort_keys=True))
    return facts[name]


def _read(cache: Path) -> dict[str, Any]:
    try:
        content = json.loads(cache.read_text())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _version(path: Path) -> list[int]:
    """Return facts of a file that change with every write."""
    facts = path.stat()
    return [facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns, facts.st_ino]
