"""Receive a folder's tree: what is missing of it here, in one stream; sent alone to the machine that is to have it.

Arguments: ``look`` or ``take``, the folder, and the tree's id. ``look`` ends with 0 where the folder is that tree. ``take`` reads one line of
JSON, [[name, kind, size, digest], ...], prints the numbers of those that are missing as another, and unpacks a tar of them; then it prints the
names that have not arrived. The folder is whole or not there: until then it has another name.
"""

import contextlib
import fcntl
import json
import os
import stat
import subprocess
import sys
from typing import Any, Dict, List, Optional, Set, Tuple

LINK = "link"
PIECE = 1 << 20
PLACED_AT = 10**9
"""Time of the last change of every file of a tree, in seconds since 1970: what has another one was written afterwards."""


def version(path: bytes) -> Optional[List[Any]]:
    """Return what changes whenever a file or link is written; None where there is none."""
    try:
        known = os.lstat(path)
    except OSError:
        return None
    kind = LINK if stat.S_ISLNK(known.st_mode) else stat.S_IMODE(known.st_mode)
    return [kind, known.st_size, known.st_mtime_ns, known.st_ctime_ns, known.st_ino]


def names_below(folder: bytes) -> Set[str]:
    """Return the names of all files and links below a folder, which is named in bytes: here another encoding may be the usual one."""
    found, start = set(), len(os.path.join(folder, b""))
    for where, folders, files in os.walk(folder):
        links = [name for name in folders if os.path.islink(os.path.join(where, name))]
        found.update(os.path.join(where, name)[start:].decode("utf-8", "surrogateescape") for name in files + links)
    return found


def below(folder: bytes, name: str) -> bytes:
    return os.path.join(folder, name.encode("utf-8", "surrogateescape"))


class Tree:
    """A folder that is to be a tree, and the list of its files that is kept beside it."""

    def __init__(self, folder: str) -> None:
        above, name = os.path.split(os.fsencode(folder))
        self.folder, self.part = os.path.join(above, name), os.path.join(above, b"." + name + b".part")
        self.list = os.path.join(above, b"." + name + b".list")

    def known(self) -> Tuple[str, Set[str], Dict[str, List[Any]]]:
        """Return the id in the list, its names, and {name: [kind, digest, version]} of the files that are as it says."""
        where, rows = self.folder if os.path.isdir(self.folder) else self.part, []
        with contextlib.suppress(OSError), open(self.list) as file:
            for line in file:
                with contextlib.suppress(ValueError):  # The last one of an older version may be cut off.
                    rows.append(json.loads(line))
        files = dict((row[0], row[1:]) for row in rows if isinstance(row, list))
        there = dict((name, row) for name, row in files.items() if row[2] == version(below(where, name)))
        return ([""] + [row for row in rows if isinstance(row, str)])[-1], set(files), there

    def is_whole(self, tree: str) -> bool:
        id, files, there = self.known()
        return id == tree and os.path.isdir(self.folder) and files == set(there) == names_below(self.folder)

    def take(self, tree: str, wanted: List[List[Any]]) -> List[str]:
        """Receive what is missing; return the names that have not arrived whole."""
        lock = open(self.list + b".lock", "w")  # noqa: SIM115 - until the process ends
        fcntl.flock(lock, fcntl.LOCK_EX)  # One whose stream was cut off may still write down what it has.
        there = self.known()[2]
        here = dict((row[0], there[row[0]]) for row in wanted if there.get(row[0], ())[:2] == [row[1], row[3]])
        missing = [number for number, row in enumerate(wanted) if row[0] not in here]
        if os.path.isdir(self.folder):
            os.rename(self.folder, self.part)
        os.makedirs(self.part, exist_ok=True)
        for name in names_below(self.part) - set(here):
            os.remove(below(self.part, name))
        for where, _, _ in os.walk(self.part, topdown=False):
            with contextlib.suppress(OSError):  # It is not empty.
                os.rmdir(where)
        os.makedirs(self.part, exist_ok=True)
        print(json.dumps(missing))
        sys.stdout.flush()
        tar = subprocess.Popen(["tar", "-C", self.part, "--no-same-owner", "-xf", "-"], stderr=subprocess.PIPE)
        said = tar.stderr.read().decode(
            "utf-8", "replace"
        )  # Nobody may be there to hear it before the list is written.
        for name, kind, size, digest in (wanted[number] for number in missing):
            now = version(below(self.part, name))
            # It gets its time when all of it is there.
            if now and (kind == LINK or (now[1] == size and now[2] == PLACED_AT * 10**9)):
                here[name] = [kind, digest, now]
        lacking = [row[0] for row in wanted if row[0] not in here]
        with open(self.list + b".new", "w") as file:
            file.write(json.dumps("" if lacking else tree) + "\n")
            file.writelines(json.dumps([name] + row) + "\n" for name, row in here.items())
        os.rename(self.list + b".new", self.list)
        if tar.wait():
            sys.exit(said.strip()[-500:])
        if not lacking:
            os.rename(self.part, self.folder)
        return lacking


def main(what: str, folder: str, tree: str) -> int:
    if what == "look":
        return 0 if Tree(folder).is_whole(tree) else 1
    os.makedirs(os.path.dirname(folder), exist_ok=True)
    line = b""
    while not line.endswith(b"\n"):  # What comes behind it is asked for.
        piece = os.read(0, PIECE)
        if not piece:
            sys.exit("the stream ended before it began")
        line += piece
    print(json.dumps(Tree(folder).take(tree, json.loads(line.decode("utf-8")))))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
