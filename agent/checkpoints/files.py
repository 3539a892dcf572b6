"""Checkpoints of any program: the files in the log folder whose path ``options["pattern"]`` matches, with the group ``step``.

A file is whole once it was renamed into place, once no process has it open, or once nothing has been written to it for a while. A program
that writes in place and is killed meanwhile leaves a torn file that nobody can tell from a whole one: let it write under another name and rename.
"""

import glob
import os
import re
import time

from agent.checkpoints import Checkpoints

STABLE_S = 30


class Format(Checkpoints):
    """The checkpoint files in a log folder."""

    def found(self):
        """Return [(step, name)] of the files that match, newest first."""
        pattern, found = re.compile(self.options["pattern"]), []
        for folder, _, names in os.walk(self.logdir):
            for name in names:
                path = os.path.relpath(os.path.join(folder, name), self.logdir)
                match = pattern.fullmatch(path)
                if match:
                    found.append((int(match.group("step")), path))
        return sorted(found, reverse=True)

    def files_of(self, name):
        return [name] if os.path.exists(self.path(name)) else []

    def kinds_of(self, name):
        return {"data": name}

    def flaw_of(self, name):
        try:
            file = os.stat(self.path(name))
        except FileNotFoundError:
            return name + " is gone"
        if not file.st_size:
            return name + " is empty"
        if is_at_rest(file.st_mtime, file.st_ctime, time.time()) or not is_open(file):
            return ""
        return name + " is being written"


def is_at_rest(written_at, changed_at, now):
    """Tell whether a file was renamed after it was written, which changes the second time alone, or was written long ago."""
    return changed_at > written_at or abs(now - written_at) >= STABLE_S


def is_open(file):
    """Tell whether any process has the file open. A rename in the same tick of the clock as the last write leaves no other sign."""
    for link in glob.iglob("/proc/[0-9]*/fd/*"):
        try:
            if os.path.samestat(os.stat(link), file):
                return True
        except OSError:  # The process has ended, or closed it.
            continue
    return False


def main(path):
    """Accept every file: only the program knows what it should hold."""
    return 0
