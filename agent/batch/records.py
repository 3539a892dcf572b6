"""What was asked of the queue and what it granted, one file for each of its jobs, in the person's home: the receipt is made of it.

The queue itself forgets a job minutes after its end.
"""

import contextlib
import json
import os
import time

from agent.whole_file import write_whole

FOLDER = "~/.microcluster/jobs"


def path_of(request, number):
    owner = "{}-{}".format(request["stack"], request["mark"])
    return os.path.join(os.path.expanduser(FOLDER), owner, number + ".json")


def note(request, number, folder, **facts):
    """Add facts to the record of a job; what is known already stays."""
    path = path_of(request, number)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    known = dict(request, id=number, folder=folder, submitted=time.time(), started=None, ended=None)
    with contextlib.suppress(FileNotFoundError, ValueError), open(path) as file:
        known.update(json.load(file))
    known.update((key, value) for key, value in facts.items() if known.get(key) is None)
    write_whole(path, json.dumps(known, sort_keys=True))
    return known
