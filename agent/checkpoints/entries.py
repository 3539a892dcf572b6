"""The files and links below a folder: a folder is listed again only after its own time has changed.

A link to a folder elsewhere that is a checkpoint is walked as that folder; any other link is one entry, wherever it leads.
"""

import os
import stat
import time
from collections import deque
from types import SimpleNamespace

SURE_S = 1.0
"""A folder may change once more within the tick of the clock that its time shows, so what was listed then is listed again."""
OURS = (".git", "__pycache__", ".attempt")
"""Names that nobody looks for; the last one is that of a file of ours on a shared drive."""


class Entries:
    """What lies below ``top``; ``part_of`` tells of a path which checkpoint it is a part of, or None."""

    def __init__(self, top, part_of):
        self.top, self.part_of, self.folders = top, part_of, {}

    def look(self):
        """List what has changed; return whether anything has."""
        before, self.folders, waiting, seen = self.folders, {}, deque([""]), set()
        while waiting:
            folder = waiting.popleft()  # The nearest first: a link may lead to a folder that other ways lead to.
            try:
                now = self._listed(folder, before.get(folder))
            except OSError as error:
                if not folder and not isinstance(error, FileNotFoundError):
                    raise
                continue  # The program has removed it meanwhile, or nobody may read it.
            if now.identity not in seen:
                seen.add(now.identity)
                self.folders[folder] = now
                waiting += now.folders
        return len(before) != len(self.folders) or any(before.get(one) is not self.folders[one] for one in self.folders)

    def _listed(self, folder, known):
        where = os.path.join(self.top, folder)
        found, now = os.stat(where), time.monotonic()
        is_same = known is not None and known.changed == found.st_mtime_ns
        if is_same and known.is_sure:
            return known
        since = known.since if is_same else now
        listed = {"since": since, "is_sure": now - since >= SURE_S, "changed": found.st_mtime_ns}
        files, folders, links = [], [], []
        for entry in os.scandir(where):
            if entry.name in OURS:
                continue
            name = os.path.join(folder, entry.name)
            links += [name] if entry.is_symlink() else []
            if entry.is_dir(follow_symlinks=False) or (entry.is_symlink() and self._is_folder_elsewhere(name)):
                folders.append(name)
            elif entry.is_symlink() or entry.is_file():
                files.append(name)
        parts = dict((name, part) for name, part in ((name, self.part_of(name)) for name in files) if part)
        if is_same and (files, folders) == (known.files, known.folders):
            known.is_sure = listed["is_sure"]
            return known
        identity = (found.st_dev, found.st_ino)
        return SimpleNamespace(files=files, folders=folders, links=links, parts=parts, identity=identity, **listed)

    def _is_folder_elsewhere(self, name):
        path = os.path.join(self.top, name)
        return os.path.isdir(path) and self.part_of(name) and not leads_into(path, self.top)

    def files(self):
        """Return the names of all, as they were at the last look."""
        return sorted(name for folder in self.folders.values() for name in folder.files)

    def links(self):
        """Return the names of the links, those to a folder that is walked among them."""
        return sorted(name for folder in self.folders.values() for name in folder.links)

    def parts(self):
        """Return {name: the checkpoint that it is a part of} of those that are part of one."""
        return dict(pair for folder in self.folders.values() for pair in folder.parts.items())


def files_below(folder):
    """Return the names of the files and links below a folder."""
    entries = Entries(folder, lambda name: None)
    entries.look()
    return entries.files()


def leads_into(path, folder):
    """Return whether a path, with all links in it followed, lies below a folder."""
    return os.path.realpath(path).startswith(os.path.realpath(folder) + os.sep)


def stat_of(path):
    """Return what is known of a file, of a link that leads nowhere what is known of the link; None where there is neither."""
    for look in (os.stat, os.lstat):
        try:
            found = look(path)
        except OSError:
            continue
        return found if stat.S_ISREG(found.st_mode) or stat.S_ISLNK(found.st_mode) else os.lstat(path)
    return None
