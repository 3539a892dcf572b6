"""Print every checkpoint of a run as one JSON list, newest first. Argument: the run's folder."""

import json
import os

from agent import shared_folder, spec
from agent.checkpoints import checkpoints_of

FOLDERS = ("logdir", "torn")
"""Where the program writes them, and where those lie that could not be used."""


def listed(folder):
    """Return a dict for each checkpoint: its name, step, bytes by kind of file, when it was written, and its flaw.

    None is listed while the drive on which they lie does not answer.
    """
    if shared_folder.why_checkpoints_silent(folder):
        return []
    run, found = spec.read(os.path.join(folder, spec.FILE)), []
    for place in FOLDERS:
        checkpoints = checkpoints_of(run, os.path.join(folder, place))
        found += [described(checkpoints, name, step, place != FOLDERS[0]) for step, name in checkpoints.found()]
    return sorted(found, key=lambda one: one["t"], reverse=True)


def described(checkpoints, name, step, aside):
    """Return what is known of one checkpoint; one that was put aside could not be used, whatever it looks like."""
    paths = [(kind, checkpoints.path(file)) for kind, file in checkpoints.kinds_of(name).items()]
    there = [(kind, os.stat(path)) for kind, path in paths if os.path.exists(path)]
    return {
        "name": os.path.basename(name),
        "step": step,
        "best": checkpoints.is_best(name),
        "bytes": dict((kind, stat.st_size) for kind, stat in there),
        "t": max(stat.st_mtime for _, stat in there),
        "flaw": checkpoints.flaw_of(name) or ("put aside" if aside else ""),
    }


def main(folder):
    print(json.dumps(listed(folder), sort_keys=True))
