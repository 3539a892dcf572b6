"""Prints every checkpoint of a run as one JSON list, newest first. Argument: the run's folder."""

import json
import os

from agent import checkpoints

FOLDERS = ("logdir", "torn")
"""Where the framework writes them, and where those lie that could not be used."""
KINDS = dict(zip(checkpoints.PARTS, ("index", "meta", "data")))


def listed(folder):
    """Return a dict for each checkpoint: its name, step, bytes by kind of file, when it was written, and its flaw."""
    found = []
    for place in FOLDERS:
        for step, name in checkpoints.all_of(os.path.join(folder, place)):
            found.append(described(os.path.join(folder, place), name, step, place != FOLDERS[0]))
    return sorted(found, key=lambda one: one["t"], reverse=True)


def described(logdir, name, step, aside):
    """Return what is known of one checkpoint; one that was put aside could not be used, whatever it looks like."""
    paths = [(KINDS[part], os.path.join(logdir, name + part)) for part in checkpoints.PARTS]
    there = [(kind, os.stat(path)) for kind, path in paths if os.path.exists(path)]
    return {
        "name": os.path.basename(name),
        "step": step,
        "best": name.startswith(checkpoints.BEST_FOLDER),
        "bytes": dict((kind, stat.st_size) for kind, stat in there),
        "t": max(stat.st_mtime for _, stat in there),
        "flaw": checkpoints.flaw_of(logdir, name) or ("put aside" if aside else ""),
    }


def main(folder):
    print(json.dumps(listed(folder), sort_keys=True))
