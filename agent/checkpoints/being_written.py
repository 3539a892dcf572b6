"""List the files below a folder, and whether each is written to its end; also sent alone, on standard input.

Argument: the folder. Prints {name below it: [bytes, second of the last write, seconds since then]} as JSON; the last one is null
while the file may still be written to.
"""

import glob
import json
import os
import sys
import time

STABLE_S = 30


def being_written(files):
    """Return the names of those of {name: stat} that a process may still write to."""
    now = time.time()
    fresh = [name for name in files if not is_at_rest(files[name].st_mtime, files[name].st_ctime, now)]
    opened = open_files() if fresh else ()
    return sorted(name for name in fresh if (files[name].st_dev, files[name].st_ino) in opened)


def is_at_rest(written_at, changed_at, now):
    """Tell whether a file was renamed after it was written, which changes the second time alone, or was written long ago."""
    return changed_at > written_at or abs(now - written_at) >= STABLE_S


def open_files():
    """Return (device, inode) of what any process has open: a rename in the same tick of the clock as the last write leaves no other sign."""
    found = set()
    for link in glob.iglob("/proc/[0-9]*/fd/*"):
        try:
            file = os.stat(link)
        except OSError:  # The process has ended, or closed it.
            continue
        found.add((file.st_dev, file.st_ino))
    return found


def listed(folder):
    """Return what is printed; a link to a folder is a file here."""
    files = {}
    for where, folders, names in os.walk(folder):
        for name in names + [one for one in folders if os.path.islink(os.path.join(where, one))]:
            path = os.path.join(where, name)
            try:
                files[os.path.relpath(path, folder)] = os.lstat(path)
            except FileNotFoundError:  # The program has removed it meanwhile.
                continue
    writing, now = set(being_written(files)), time.time()
    ages = dict((name, None if name in writing else abs(now - file.st_mtime)) for name, file in files.items())
    return dict((name, [file.st_size, int(file.st_mtime), ages[name]]) for name, file in files.items())


if __name__ == "__main__":
    print(json.dumps(listed(sys.argv[1])))
