"""The files and links below a folder: a folder is listed again only after its own time has changed.

A link to a folder elsewhere that is a checkpoint is walked as that folder; any other link is one entry, wherever it leads.
"""

import contextlib
import fnmatch
import os
import time
from collections import deque
from typing import Callable, Dict, Iterable, List, NamedTuple, Optional, Set, Tuple

SURE_S = 1.0
"""A folder may change once more within the tick of the clock that its time shows, so what was listed then is listed again."""
OURS = (".git", "__pycache__", ".attempt")
"""Names that nobody looks for; the last one is that of a file of ours on a shared drive."""
Checkpoint = NamedTuple("Checkpoint", [("step", int), ("name", str)])
Listed = NamedTuple(
    "Listed",
    [
        ("identity", Tuple[int, int]),  # Its device and inode.
        ("changed", int),
        ("since", float),  # When it has that time, by our clock.
        ("listed", float),
        ("files", List[str]),
        ("folders", List[str]),
        ("links", Set[str]),  # Files or folders too.
        ("parts", Dict[str, Checkpoint]),
    ],
)
"""One folder, and what was found in it."""


class Entries:
    """The entries below ``top``; ``part_of`` tells of a path which checkpoint it is a part of, or None."""

    def __init__(self, top: str, part_of: Callable[[str], Optional[Checkpoint]] = lambda name: None) -> None:
        self.top, self.part_of, self.folders = top, part_of, {}

    def look(self) -> bool:
        """List what has changed; return whether anything has."""
        before, self.folders, waiting, seen = self.folders, {}, deque([""]), set()
        while waiting:
            folder = waiting.popleft()  # The nearest first: a link may lead to a folder that other ways lead to.
            try:
                now = self._listed(folder, before.get(folder))
            except OSError as error:  # The program has removed it meanwhile, or nobody may read it.
                if not (folder or isinstance(error, FileNotFoundError)):
                    raise
                continue
            if now.identity not in seen:
                seen.add(now.identity)
                self.folders[folder] = now
                waiting.extend(now.folders)
        return before != self.folders

    def _listed(self, folder: str, known: Optional[Listed]) -> Listed:
        path = os.path.join(self.top, folder)
        found, now = os.stat(path), time.monotonic()
        since = known.since if known and known.changed == found.st_mtime_ns else now
        if known and known.listed - since >= SURE_S:
            return known
        below = os.path.join(folder, "")
        there = [(below + one.name, one) for one in os.scandir(path) if one.name not in OURS]
        links = set(name for name, one in there if one.is_symlink())
        folders = [name for name, one in there if one.is_dir(follow_symlinks=False)]
        folders += filter(self._leads_elsewhere, sorted(links))  # Of two ways to a folder every process takes the same.
        files = sorted(links.union(name for name, one in there if one.is_file()).difference(folders))
        parts = dict((name, part) for name, part in zip(files, map(self.part_of, files)) if part)
        return Listed((found.st_dev, found.st_ino), found.st_mtime_ns, since, now, files, folders, links, parts)

    def _leads_elsewhere(self, link: str) -> bool:
        path = os.path.join(self.top, link)
        return os.path.isdir(path) and bool(self.part_of(link)) and not leads_into(path, self.top)

    def files(self) -> List[str]:
        """Return the names of all, as they were at the last look."""
        return sorted(name for folder in self.folders.values() for name in folder.files)

    def files_in(self, folder: str) -> List[str]:
        """Return the names of those directly in a folder, which need not be there."""
        return self.folders[folder].files if folder in self.folders else []

    def links(self) -> List[str]:
        """Return the names of the links."""
        return sorted(name for folder in self.folders.values() for name in folder.links)

    def parts(self) -> Dict[str, Checkpoint]:
        """Return {name: the checkpoint that it is a part of} of those that are part of one."""
        return dict(pair for folder in self.folders.values() for pair in folder.parts.items())


def files_below(folder: str) -> List[str]:
    """Return the names of the files and links below a folder."""
    entries = Entries(folder)
    entries.look()
    return entries.files()


def prefixes(name: str) -> List[str]:
    """Return a name below a folder and the folders that it is in, the outermost first."""
    words = name.split(os.sep)
    return [os.sep.join(words[: number + 1]) for number in range(len(words))]


def is_kept(name: str, patterns: Iterable[str]) -> bool:
    """Tell whether a pattern matches a file or a folder that it is in; `*` matches folders too, and `**/` also none."""
    wanted = [one.rstrip("/") for pattern in patterns for one in (pattern, pattern.replace("**/", ""))]
    return any(fnmatch.fnmatchcase(path, pattern) for path in prefixes(name) for pattern in wanted)


def leads_into(path: str, folder: str) -> bool:
    """Return whether a path, with all links in it followed, lies below a folder."""
    return os.path.realpath(path).startswith(os.path.realpath(folder) + os.sep)


def stat_of(path: str) -> Optional[os.stat_result]:
    """Return what is known of a file, of a link that leads nowhere what is known of the link; None where there is neither."""
    with contextlib.suppress(OSError):
        return os.stat(path) if os.path.exists(path) else os.lstat(path)
    return None
