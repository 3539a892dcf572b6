"""Records of what was asked of the queue and what its jobs used: small files in the person's home, of which the receipt is made.

The queue itself forgets a job minutes after its end. A run's record is written before each submission, under the name of its jobs, which
no run in another folder has: it says whose a job is. Each start of a job has a file of its own, which begins with what the record said then.
"""

import json
import os
import time
from typing import Any, Dict

from agent.machine import read_json, write_whole

FOLDER = "~/.microcluster/jobs"
SEEN_EVERY_S = 20
"""Seconds between two notes of a job that it lives, so that one that was killed is counted until about then."""


def owner_of(request: Dict[str, Any]) -> str:
    return "{}-{}".format(request["stack"], request["mark"])


def path_of(request: Dict[str, Any]) -> str:
    """Return where the record of a run lies."""
    return "{}/{}.json".format(FOLDER, request["name"])


def last(request: Dict[str, Any]) -> Dict[str, Any]:
    """Return the record of the last submission of a run; before the first one, what is asked for."""
    return read_json(os.path.expanduser(path_of(request))) or request


def intend(request: Dict[str, Any]) -> Dict[str, Any]:
    """Write down that a job is about to be submitted; return the record."""
    path = os.path.expanduser(path_of(request))
    os.makedirs(os.path.dirname(path), exist_ok=True)
    record = dict(request, submitted=time.time())
    write_whole(path, json.dumps(record) + "\n")
    return record


class Life:
    """One start of a job, in a file that its script has begun."""

    def __init__(self, path: str) -> None:
        self.path, self.facts = path, read_json(path)

    def note(self, **facts: Any) -> None:
        self.facts.update(facts)
        write_whole(self.path, json.dumps(self.facts) + "\n")

    def seen(self) -> None:
        """Write down, now and then, that the job lives."""
        if not 0 <= time.time() - self.facts["seen"] < SEEN_EVERY_S:
            self.note(seen=time.time())
