"""End a run's job and prove it, on the login host. Arguments: the run's folder, the owner (STACK-MARK). Prints one line of JSON.

The job is asked first: it sees every process on its nodes, those too that have left its steps, which qdel would leave behind. Then
the queue has to show that it is gone. The wish stays in the folder, so that a job that a slow qsub brings later ends itself.
"""

import contextlib
import json
import os
import time

from agent.batch import CACHE, ENDED, REQUEST, STOP, asking, commands, records
from agent.batch.job import remove_secrets

ASKED_S, GONE_S, LOOK_EVERY_S = 60, 60, 1.0
NOTHING = {"deleted": [], "left": [], "nodes": {}}


def main(folder, owner):
    asking.answer(lambda: leave(folder, owner))


def leave(folder, owner):
    """Return the jobs that would not go, and for each node why it is not proved that the run's processes have ended."""
    try:
        with open(os.path.join(folder, REQUEST)) as file:
            name = json.load(file)["name"]
    except FileNotFoundError:
        return NOTHING  # Nothing was ever submitted from there.
    if living(name, folder, lambda whose: whose not in (None, owner)):
        return NOTHING  # Another stack's, with a copy of our key: it carries out the same run in the same folder.
    touch(os.path.join(folder, STOP))
    with asking.locked():
        return end(folder, name, lambda: living(name, folder, lambda whose: whose in (None, owner)))


def living(name, folder, is_meant):
    """Return the run's living jobs whose owners, by their records, are meant."""
    jobs, known = asking.own(commands.jobs(asking.asked(commands.LIST)), name, folder), records.everything()
    found = [(job, records.record_of(job, known)) for job in jobs]
    return [job for job, record in found if is_meant(record and records.owner_of(record))]


def end(folder, name, look):
    there, ended = look(), os.path.join(folder, ENDED)
    if any(job.state not in commands.WAITING for job in there):
        wait_until(lambda: os.path.exists(ended), ASKED_S)
    for job in there:
        asking.asked(commands.delete(job.number), accept_any=True)
    if not any(os.path.exists(os.path.join(folder, each)) for each in ("exit_code", "stopped")):
        touch(os.path.join(folder, "stopped"))
    wait_until(lambda: not look(), GONE_S)
    remove_secrets(folder)
    with contextlib.suppress(FileNotFoundError):
        os.remove(os.path.join(folder, CACHE))
    return {
        "deleted": [job.number for job in there],
        "left": [job.number for job in look()],
        "nodes": proof(ended, there),
    }


def touch(path):
    with open(path, "w"):
        pass


def proof(ended, there):
    """Return {node: why} as the job wrote it down; a job that ran and left no word proves nothing."""
    with contextlib.suppress(FileNotFoundError), open(ended) as file:
        return json.load(file)
    ran = [job.number for job in there if job.state not in commands.WAITING]
    return {"the nodes of job " + number: "it ended without a word of its processes" for number in ran}


def wait_until(is_so, limit_s):
    deadline = time.monotonic() + limit_s
    while not is_so() and time.monotonic() < deadline:
        time.sleep(LOOK_EVERY_S)
