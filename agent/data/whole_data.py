"""Data taken whole, with their folders: out of a tar that nobody trusts, or from a folder that was sent."""

import hashlib
import os
import re
import shutil
import stat

from agent.data import archives
from agent.data.progress import Refused
from agent.machine import hash_of

FILE, PROGRAM, LINK = "file", "program", "link"
"""Kinds of entries of a tree."""
LEAST_BYTES = 4096
"""What a file takes of a disk at least."""
LONGEST_NAME_BYTES, LONGEST_PATH_BYTES = 255, 2048
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
OUT_OF_IT = ("", "..")


def entries(path, most_bytes):
    """Yield (archive, member, name) of each file and link of a tar; raise for one that data must not hold."""
    total, names, sources = 0, set(), set()
    for archive, member, name in archives.members(path):
        if member.isdir():
            continue
        total += max(member.size, LEAST_BYTES)
        why = "it is there twice" if name in names else flaw(member, name)
        if total > most_bytes:
            why = "with it the content has more than {:,} bytes".format(most_bytes)
        if why:
            raise archives.refusal(path, member, why)
        names.add(name)
        sources.add(name if member.isfile() else source_of(member, name))
        yield archive, member, name
    if not sources <= names:
        lost = "unpacking {}: a link leads to {}, which is no file of it. Nothing of it is used."
        raise Refused(lost.format(os.path.basename(path), min(sources - names)))
    if not names:
        raise Refused("unpacking {}: it holds no file".format(os.path.basename(path)))


def flaw(member, name):
    """Return why data must not hold a member, or an empty text."""
    if CONTROL.search(name):
        return "its name has control characters or is no UTF-8"
    if max(len(part.encode()) for part in name.split("/")) > LONGEST_NAME_BYTES or len(name) > LONGEST_PATH_BYTES:
        return "its name is too long"
    if member.issym() or member.islnk():
        return "it is a link that leads out of the folder" if source_of(member, name).split("/")[0] in OUT_OF_IT else ""
    return "" if member.isfile() else "it is neither a file nor a link"


def source_of(member, name):
    """Return what a link of a tar leads to, from the top of the tar."""
    return os.path.normpath(os.path.join(os.path.dirname(name) if member.issym() else "", member.linkname))


def unpack(path, folder, most_bytes):
    """Write all of a tar below a new folder; links come last, so that nothing is written through one."""
    folder, links = os.path.realpath(folder), []
    for archive, member, name in entries(path, most_bytes):
        target = os.path.join(folder, name)
        if member.isfile():
            archives.write(path, archive, member, target)
        else:
            links.append((member.issym(), target, member.linkname if member.issym() else source_of(member, name)))
    for is_symbolic, target, source in sorted(links):
        parent = os.path.dirname(target)
        if os.path.realpath(parent) != parent:
            raise Refused("unpacking {}: {} lies behind a link".format(os.path.basename(path), target))
        os.makedirs(parent, exist_ok=True)
        if is_symbolic:
            os.symlink(source, target)
        else:
            os.link(os.path.join(folder, source), target)


def copy(sent, folder, wanted):
    """Make a new folder a copy of one that was sent, whose tree has to have the id that is wanted."""
    shutil.copytree(sent, folder, symlinks=True, copy_function=archives.link_or_copy)
    found = tree_id(folder)
    if found != wanted:
        raise Refused("taking {}: its id is {} instead of {}. Send it again: make up".format(sent, found, wanted))


def tree_id(folder):
    """Return the hash of a folder's files and links, as the operator's computer has made it."""
    lines = []
    for name in names_below(folder):
        path = os.path.join(folder, name)
        kind = PROGRAM if os.stat(path).st_mode & stat.S_IXUSR else FILE
        row = (LINK, name, os.readlink(path)) if os.path.islink(path) else (kind, name, hash_of(path))
        lines.append("{}\0{}\0{}\0".format(*row))
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def names_below(folder):
    """Return the names of all files and links below a folder, in their order; raise where one leads to no file of it."""
    found, inside = [], os.path.realpath(folder) + "/"
    for where, folders, files in os.walk(folder):
        for name in files + [one for one in folders if os.path.islink(os.path.join(where, one))]:
            path = os.path.join(where, name)
            real = os.path.realpath(path)
            if not (real.startswith(inside) and os.path.isfile(real)):
                raise Refused("checking the data: {} leads to no file of theirs. Nothing of them is used.".format(path))
            found.append(os.path.relpath(path, folder))
    return sorted(found)
