"""What was asked of the queue, and what its jobs used: small files in the person's home, of which the receipt is made.

The queue itself forgets a job minutes after its end. No file has two writers: a job's record is written once, by whoever sees the
job first, and each start of it has a file of its own. A record by a job's name stands there before its number is known.
"""

import contextlib
import json
import os
import socket
import time

from agent.batch import REQUEST
from agent.machine import write_whole

FOLDER = "~/.microcluster/jobs"
SEEN_EVERY_S = 20
"""How often a job writes down that it lives, so that one that was killed is counted until about then."""


def owner_of(request):
    return "{}-{}".format(request["stack"], request["mark"])


def path_of(request, name):
    return os.path.join(os.path.expanduser(FOLDER), owner_of(request), name + ".json")


def request_in(folder):
    """Return what is asked of the queue for a run, or None where nothing ever was."""
    with contextlib.suppress(FileNotFoundError), open(os.path.join(folder, REQUEST)) as file:
        return json.load(file)
    return None


def intend(request, folder):
    """Write down that a job is about to be submitted: whose a job is that nobody has numbered yet."""
    write_whole(*entry(request, None, folder))


def note(request, number, folder):
    """Write a job's record unless there is one; return it."""
    return json.loads(first(*entry(request, number, folder)))


def entry(request, number, folder):
    """Return the file of a job's record, whose folder is there then, and its text."""
    path = path_of(request, number or request["name"])
    os.makedirs(os.path.dirname(path), exist_ok=True)
    return path, json.dumps(dict(request, id=number, folder=folder, submitted=time.time()), sort_keys=True)


def first(path, text):
    """Write a file unless it is there; return what it holds, whoever of several writers came first."""
    own = "{}.{}-{}".format(path, socket.gethostname(), os.getpid())
    with open(own, "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    try:
        with contextlib.suppress(FileExistsError):
            os.link(own, path)
    finally:
        os.remove(own)
    with open(path) as file:
        return file.read()


def everything():
    """Return all records of this person."""
    top, found = os.path.expanduser(FOLDER), []
    for folder, _, names in os.walk(top):
        for name in names:
            with contextlib.suppress(OSError, ValueError), open(os.path.join(folder, name)) as file:
                found.append(json.load(file))
    return [record for record in found if "submitted" in record]


def record_of(job, records):
    """Return the record of a job in the queue, or None. A number alone says little: a site may begin to count anew."""
    named = [record for record in records if record["name"] == job.name]
    numbered = [record for record in named if record["id"] == job.number]
    intents = sorted((record for record in named if record["id"] is None), key=lambda record: record["submitted"])
    return (numbered or intents[-1:] or [None])[0]


class Life:
    """One start of a job, in a file that its script has begun."""

    def __init__(self, path):
        self.path, self.seen_at = path, time.monotonic()
        with open(path) as file:
            self.facts = json.load(file)

    def note(self, **facts):
        self.facts.update(facts)
        write_whole(self.path, json.dumps(self.facts, sort_keys=True))

    def seen(self):
        """Write down, now and then, that the job lives."""
        if time.monotonic() >= self.seen_at + SEEN_EVERY_S:
            self.seen_at = time.monotonic()
            self.note(seen=time.time())
