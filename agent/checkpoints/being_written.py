"""List the files below a folder, and whether each is written to its end; also sent alone, on standard input.

Argument: the folder. Prints {name below it: [bytes, second of the last write, seconds since then, whether it is a link that leads nowhere]}
as JSON; the seconds are null while a process has the file open to write to it.
"""

import glob
import json
import os
import sys
import time

STABLE_S = 30
"""A program may be about to write the next file of what it has written to so lately."""


def being_written(files):
    """Return the names of those of {name: stat} that a process has open to write to."""
    opened = open_files() if files else ()
    return sorted(name for name in files if (files[name].st_dev, files[name].st_ino) in opened)


def open_files():
    """Return (device, inode) of what any process has open for writing."""
    found = set()
    for link in glob.iglob("/proc/[0-9]*/fd/*"):
        try:
            if os.lstat(link).st_mode & 0o200:  # How it was opened: of what is read only, nobody may write to the link.
                file = os.stat(link)
                found.add((file.st_dev, file.st_ino))
        except OSError:  # The process has ended, or closed it.
            continue
    return found


def listed(folder):
    """Return what is printed; a link to a folder is a file here."""
    files, nowhere = {}, set()
    for where, folders, names in os.walk(folder):
        for name in names + [one for one in folders if os.path.islink(os.path.join(where, one))]:
            path = os.path.join(where, name)
            try:
                files[os.path.relpath(path, folder)] = os.lstat(path) if os.path.isdir(path) else os.stat(path)
            except OSError:
                try:
                    files[os.path.relpath(path, folder)] = os.lstat(path)
                    nowhere.add(os.path.relpath(path, folder))
                except OSError:  # The program has removed it meanwhile.
                    continue
    writing, now = set(being_written(files)), time.time()
    ages = dict((name, None if name in writing else abs(now - file.st_mtime)) for name, file in files.items())
    return dict((name, [files[name].st_size, int(files[name].st_mtime), ages[name], name in nowhere]) for name in files)


if __name__ == "__main__":
    print(json.dumps(listed(sys.argv[1])))
