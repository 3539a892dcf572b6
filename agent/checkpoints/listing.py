"""Print every checkpoint of a run as one JSON list, newest first. Argument: the run's folder."""

import json
import os

from agent import spec
from agent.checkpoints.log_folder import checkpoints_in, checkpoints_of, put_aside_beside, why_checkpoints_silent
from agent.machine import is_locked
from agent.supervise.guard import RUN_LOCK


def listed(folder):
    """Return a dict for each checkpoint: its name, step, bytes by kind of file, when it was written, and the suspicion against it.

    None is listed while the drive on which they lie does not answer.
    """
    if why_checkpoints_silent(folder):
        return []
    here, run = checkpoints_in(folder), spec.read(os.path.join(folder, spec.FILE))
    here.at_work = is_locked(os.path.join(folder, RUN_LOCK))
    found = []
    for place in [here] + [checkpoints_of(run, aside) for aside in put_aside_beside(here.logdir)]:
        found += [described(place, name, step, place is not here) for step, name in place.found()]
    return sorted(filter(None, found), key=lambda one: one["t"], reverse=True)


def described(checkpoints, name, step, aside):
    """Return what is known of one checkpoint, None where the program has just removed it."""
    there, best = checkpoints.stats_of(name), checkpoints.is_best(name)
    kinds = dict(
        (kind, [there[file].st_size for file in files if file in there])
        for kind, files in checkpoints.kinds_of(name).items()
    )
    return there and {
        "name": os.path.basename(name) if best else name,
        "step": step,
        "best": best,
        "bytes": dict((kind, sum(sizes)) for kind, sizes in kinds.items() if sizes),
        "t": max(one.st_mtime for one in there.values()),
        "flaw": checkpoints.suspicion_of(name) or ("put aside" if aside else ""),
    }


def main(folder):
    print(json.dumps(listed(folder), sort_keys=True))
