"""Folder of the operator's computer that travels as it is: its facts, and the list of its files that its last reading has kept."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from microcluster.core.home import Home
from microcluster.core.plain_text import count, printable

FILE, PROGRAM, LINK = "file", "program", "link"
"""Kinds of entries; a program is a file that may be executed."""
IGNORE_FILE = ".microclusterignore"
LONGEST_NAMES = 200
REPOSITORY = Path(__file__).parents[2]


class Entry(NamedTuple):
    """One file or link of a tree.

    Attributes:
        name: path below the folder.
        digest: SHA-256 of a file's content, or the target of a link.
        version: what changes whenever the file is written: size, mtime, ctime and inode.
    """

    name: str
    kind: str
    size: int
    digest: str
    version: tuple[int, ...] = ()


@dataclass(frozen=True)
class FolderTree:
    """Facts of a folder's tree; its contents stay in the folder.

    Attributes:
        path: the folder on the operator's computer; a relative one is below the repository of the stack files, which may be cloned elsewhere.
        id: one hash over names, kinds, targets of links and contents.
        files, bytes: what travels.
        left_files, left_bytes: what stays behind; ``left_names`` has a few of the names.
        hashes: of each text that is not hidden, by name, where the folder is small: a run of before there were trees keeps its id.
    """

    path: str
    id: str
    files: int
    bytes: int
    left_files: int = 0
    left_bytes: int = 0
    left_names: tuple[str, ...] = ()
    hashes: Mapping[str, str] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        return REPOSITORY / self.path

    @property
    def summary(self) -> tuple[str, str]:
        """Two phrases for people: the files that travel, and the files that stay behind with the reason."""
        left = "nothing stays behind"
        if self.left_files:
            names = printable(", ".join(self.left_names), LONGEST_NAMES)
            left = (
                f"{count(self.left_files, 'file')} with {self.left_bytes:,} bytes stay behind, as git ignores them ({names}); lines such as "
                f"!{printable(self.left_names[0])} in {IGNORE_FILE} take them in"
            )
        return f"{count(self.files, 'file')} with {self.bytes:,} bytes of {self.path} travel", left

    def entries(self) -> tuple[Entry, ...]:
        """Return the files of the tree in the order of their names.

        Raises:
            LookupError: the folder has changed since, or nobody on this computer has read it.
        """
        lists = (kept(self.folder, is_data=is_data) for is_data in (False, True))
        found = next((entries for entries in lists if id_of(entries) == self.id), None)
        if found is None:
            raise LookupError(f"{self.path} is not what it was when the stack file was read")
        return found


def id_of(entries: tuple[Entry, ...]) -> str:
    """Return the hash of a tree."""
    lines = (f"{one.kind}\0{one.name}\0{one.digest}\0" for one in entries)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def list_of(folder: Path, *, is_data: bool) -> Path:
    """Return the file that keeps the list of a folder's files; the same folder as data has another one, because more of it travels."""
    name = hashlib.sha256(str(folder).encode()).hexdigest()[:16]
    return Home.of().root / "cache" / "trees" / (f"{name}.data.json" if is_data else f"{name}.json")


def kept(folder: Path, *, is_data: bool) -> tuple[Entry, ...]:
    """Return what the last reading of a folder has found; nothing where it was never read."""
    try:
        rows = json.loads(list_of(folder, is_data=is_data).read_text())
        return tuple(Entry(*row[:4], tuple(row[4])) for row in rows)
    except (OSError, ValueError, TypeError, LookupError):
        return ()
