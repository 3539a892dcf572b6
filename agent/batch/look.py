"""Read one run's folder on the login host, with its job's place in the queue; print it as one JSON line. Argument: the folder."""

import contextlib
import json
import os
import time

from agent.batch import CACHE, REQUEST, asking, commands, grant, records
from agent.records import run_snapshot

FRESH_S = 10
"""Who watches looks every second or two; the queue is asked less often."""


def main(folder):
    asking.answer(lambda: with_queue(run_snapshot.observe(folder), folder, time.time()))


def with_queue(seen, folder, now):
    """Return the snapshot of a run as its queue lets it be read: the queue knows whether its job lives, and waits."""
    try:
        with open(os.path.join(folder, REQUEST)) as file:
            request = json.load(file)
    except FileNotFoundError:
        return seen
    jobs = [commands.Job(*job) for job in listed(folder, now)]
    mine = asking.own(jobs, request["name"], folder)
    if not mine:
        return dict(seen, alive=False)
    job, granted = mine[-1], grant.read(folder)
    marked = os.path.join(folder, "alive_at")
    # The clock in that file is the first node's, so that here only the file's own time says anything.
    silent_s = now - os.path.getmtime(marked) if granted and os.path.exists(marked) else None
    seen = dict(seen, alive=True, silent_s=silent_s)
    if granted and seen["phase"]:
        return seen
    known = records.note(request, job.number, folder)
    place = position(jobs, job)
    return dict(seen, phase="queued", queue=dict(place, job=job.number, waited_s=max(0.0, now - known["submitted"])))


def position(jobs, mine):
    """Return the place of a job among those that wait in its queue, from 1; 0 for one that does not wait any more."""
    waiting = [job.number for job in jobs if job.queue == mine.queue and job.state in commands.WAITING]
    place = waiting.index(mine.number) + 1 if mine.number in waiting else 0
    return {"queue": mine.queue, "position": place, "waiting": len(waiting)}


def listed(folder, now):
    """Return the rows of qstat, from the run's folder where that was asked a moment ago."""
    path = os.path.join(folder, CACHE)
    with contextlib.suppress(OSError, ValueError):
        if 0 <= now - os.path.getmtime(path) < FRESH_S:
            with open(path) as file:
                return json.load(file)
    rows = commands.jobs(asking.asked(commands.LIST))
    with open(path + ".new", "w") as file:
        json.dump(rows, file)
    os.rename(path + ".new", path)
    return rows
