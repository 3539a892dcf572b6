"""List the files below a folder, and whether each is written to its end; also sent alone, on standard input.

Argument: the folder. Prints {name below it: [bytes, second of the last write, seconds since then, whether it is a link that leads nowhere]}
as JSON; the seconds are null while a process has the file open to write to it, and the last one is null of a link to a folder elsewhere.
"""

import glob
import json
import os
import sys
import time
from typing import Any, Dict, List, Mapping, Optional

STABLE_S = 30
"""A program may be about to write the next file of what it has written to so lately."""


def being_written(files: Mapping[str, os.stat_result]) -> List[str]:
    """Return the names of those of {name: stat} that a process has open to write to."""
    opened = set()
    for link in glob.iglob("/proc/[0-9]*/fd/*"):
        try:
            if os.lstat(link).st_mode & 0o200:  # How it was opened: of what is read only, nobody may write to the link.
                file = os.stat(link)
                opened.add((file.st_dev, file.st_ino))
        except OSError:  # The process has ended, or closed it.
            continue
    return sorted(name for name in files if (files[name].st_dev, files[name].st_ino) in opened)


def listed(folder: str) -> Dict[str, Any]:
    """Return what is printed: files and links, of which one to a folder is a file here; nothing else can be brought."""
    files = {}
    for where, folders, names in os.walk(folder):
        for path in (os.path.join(where, name) for name in names + folders):
            try:
                found = os.stat(path) if os.path.isfile(path) else os.lstat(path)
            except OSError:  # The program has removed it meanwhile.
                continue
            if os.path.isfile(path) or os.path.islink(path):
                files[os.path.relpath(path, folder)] = found
    writing, now = set(being_written(files)), time.time()
    ages = dict((name, None if name in writing else abs(now - file.st_mtime)) for name, file in files.items())
    rows = dict((name, [file.st_size, int(file.st_mtime), ages[name]]) for name, file in files.items())
    return dict((name, row + [leads_nowhere(os.path.join(folder, name), folder)]) for name, row in rows.items())


def leads_nowhere(path: str, folder: str) -> Optional[bool]:
    """Return whether there is nothing at a path; None of a folder that is not below this one."""
    is_elsewhere = os.path.isdir(path) and not os.path.realpath(path).startswith(os.path.realpath(folder) + os.sep)
    return None if is_elsewhere else not os.path.exists(path)


if __name__ == "__main__":
    print(json.dumps(listed(sys.argv[1])))
