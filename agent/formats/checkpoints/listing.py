"""Print every checkpoint of a run as one JSON list, newest first. Argument: the run's folder."""

import json
import os
from typing import Any, Dict, List

from agent.formats.checkpoints.log_folder import (
    checkpoints_in,
    checkpoints_of,
    put_aside_beside,
    why_checkpoints_silent,
)
from agent.run import document
from agent.run.records import is_alive


def listed(folder: str) -> List[Dict[str, Any]]:
    """Return a dict for each checkpoint: its name, step, bytes by kind of file, when it was written, and the suspicion against it.

    None is listed while the drive on which they lie does not answer.
    """
    if why_checkpoints_silent(folder):
        return []
    here, run = checkpoints_in(folder), document.read(os.path.join(folder, document.FILE))
    here.at_work = is_alive(folder)
    found = []
    for place in [here] + [checkpoints_of(run, aside, folder) for aside in put_aside_beside(here.logdir)]:
        for step, name in place.found():
            stats, best, sizes = place.stats_of(name), place.is_best(name), {}
            for file, known in stats.items():
                kind = place.kind_of(name, file)
                sizes[kind] = sizes.get(kind, 0) + known.st_size
            if stats:  # The program has not just removed it.
                found.append(
                    {
                        "name": os.path.basename(name) if best else name,
                        "step": step,
                        "best": best,
                        "bytes": sizes,
                        "t": max(known.st_mtime for known in stats.values()),
                        "flaw": place.suspicion_of(name) or ("" if place is here else "put aside"),
                    }
                )
    return sorted(found, key=lambda one: one["t"], reverse=True)


def main(folder: str) -> None:
    print(json.dumps(listed(folder), sort_keys=True))
