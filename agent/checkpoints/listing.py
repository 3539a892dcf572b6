"""Print every checkpoint of a run as one JSON list, newest first. Argument: the run's folder."""

import json
import os

from agent.checkpoints.log_folder import checkpoints_in, why_checkpoints_silent

FOLDERS = ("logdir", "torn")
"""Where the program writes them, and where those lie that could not be used."""


def listed(folder):
    """Return a dict for each checkpoint: its name, step, bytes by kind of file, when it was written, and its flaw.

    None is listed while the drive on which they lie does not answer.
    """
    if why_checkpoints_silent(folder):
        return []
    found = []
    for place in FOLDERS:
        checkpoints = checkpoints_in(folder, place)
        found += [described(checkpoints, name, step, place != FOLDERS[0]) for step, name in checkpoints.found()]
    return sorted(found, key=lambda one: one["t"], reverse=True)


def described(checkpoints, name, step, aside):
    """Return what is known of one checkpoint; one that was put aside could not be used, whatever it looks like."""
    there = {}
    for kind, files in checkpoints.kinds_of(name).items():
        paths = [checkpoints.path(file) for file in files]
        there[kind] = [os.stat(path) for path in paths if os.path.exists(path)]
    best = checkpoints.is_best(name)
    return {
        "name": os.path.basename(name) if best else name,
        "step": step,
        "best": best,
        "bytes": dict((kind, sum(stat.st_size for stat in stats)) for kind, stats in there.items() if stats),
        "t": max(stat.st_mtime for stats in there.values() for stat in stats),
        "flaw": checkpoints.flaw_of(name) or ("put aside" if aside else ""),
    }


def main(folder):
    print(json.dumps(listed(folder), sort_keys=True))
