"""The replica of a run's checkpoint on another node: what is missing of a new one, receiving, sending; runs in its container.

The replica is a folder of files with a manifest. A new one grows beside it, shares by hard links what both hold, and takes its
place by renaming one symbolic link: at any moment one whole replica is there, and files that the program has removed since go
with the older folder. Arguments: the run's folder and ``missing``, ``receive``, ``step`` or ``send``.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys

MARK = "microcluster-copy "
LINK, SLOTS = "copy", ("copy.a", "copy.b")
MANIFEST = "manifest.json"
PIECE = 1 << 20


class CopyFailed(Exception):
    """The replica is not there or not whole; the argument is a sentence."""


def missing(run):
    """Begin a replica by the manifest on standard input, with what is here already; print the names of what is not."""
    manifest = json.load(sys.stdin)
    slot, before = os.path.join(run, free_slot(run)), os.path.join(run, LINK)
    shutil.rmtree(slot, ignore_errors=True)
    known = read_manifest(before)["files"] if os.path.exists(before) else {}
    absent = []
    for name, wanted in sorted(manifest["files"].items()):
        here, there = os.path.join(before, name), os.path.join(slot, name)
        os.makedirs(os.path.dirname(there), exist_ok=True)
        own = os.path.join(run, name)
        if known.get(name) == wanted and os.path.exists(here) and os.path.getsize(here) == wanted[0]:
            os.link(here, there)
        elif os.path.isfile(own) and os.path.getsize(own) == wanted[0] and digest(own) == wanted[1]:
            shutil.copyfile(
                own, there
            )  # A part that this node has written; no link, for the program may write to it again.
        else:
            absent.append(name)
    with open(os.path.join(slot, MANIFEST), "w") as file:
        json.dump(dict(manifest, absent=absent), file)
    print(json.dumps(absent))


def receive(run):
    """Complete the replica from the archive on standard input, and replace the one before."""
    slot = free_slot(run)
    path = os.path.join(run, slot)
    subprocess.check_call(["tar", "-C", path, "-xf", "-"])
    manifest = read_manifest(path)
    files = manifest["files"]
    for name in manifest["absent"]:
        if digest(os.path.join(path, name)) != files[name][1]:
            raise CopyFailed(name + " arrived with another hash")
    os.sync()
    new = os.path.join(run, LINK + ".new")
    if os.path.lexists(new):
        os.remove(new)
    os.symlink(slot, new)
    os.rename(new, os.path.join(run, LINK))
    shutil.rmtree(os.path.join(run, free_slot(run)), ignore_errors=True)


def step(run):
    """Print the step of the replica that is here."""
    if os.path.exists(os.path.join(run, LINK)):
        print(MARK + str(read_manifest(os.path.join(run, LINK))["step"]))


def send(run):
    """Print the replica as an archive."""
    subprocess.check_call(["tar", "-C", os.path.join(run, LINK), "-cf", "-", "."])


def free_slot(run):
    """Return the folder in which the next replica grows: the one that the link does not name."""
    link = os.path.join(run, LINK)
    return SLOTS[1] if os.path.islink(link) and os.readlink(link) == SLOTS[0] else SLOTS[0]


def read_manifest(folder):
    with open(os.path.join(folder, MANIFEST)) as file:
        return json.load(file)


def digest(path):
    """Return the SHA-256 of a file, or None where there is none."""
    found = hashlib.sha256()
    try:
        with open(path, "rb") as file:
            for piece in iter(lambda: file.read(PIECE), b""):
                found.update(piece)
    except FileNotFoundError:
        return None
    return found.hexdigest()


VERBS = {"missing": missing, "receive": receive, "step": step, "send": send}


def main(run, verb, *names):
    try:
        VERBS[verb](run, *names)
    except (CopyFailed, OSError, subprocess.CalledProcessError) as error:
        sys.exit(str(error))
