"""Checkpoints of any program: the files in the log folder whose path ``options["pattern"]`` matches, with the group ``step``.

A file is whole once it was renamed into place, or once nothing has been written to it for a while. A program that writes in place
and is killed meanwhile leaves a torn file that nobody can tell from a whole one: let it write under another name and rename.
"""

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
        why = flaw(file.st_size, file.st_mtime, file.st_ctime, time.time())
        return name + " " + why if why else ""


def flaw(size, written_at, changed_at, now):
    """Return why a file is not whole, or an empty text; a rename changes the second time alone."""
    if not size:
        return "is empty"
    return "" if changed_at > written_at or abs(now - written_at) >= STABLE_S else "is being written"


def main(path):
    """Accept every file: only the program knows what it should hold."""
    return 0
