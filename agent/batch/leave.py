"""End a run's job and prove it, on the login host. Argument: the run's folder. Prints one line of JSON.

The job is asked first: it sees every process on its nodes, those too that have left its steps, which qdel would leave behind. Then
the queue has to show that it is gone.
"""

import contextlib
import json
import os
import time

from agent.batch import CACHE, ENDED, REQUEST, STOP, commands
from agent.batch.asking import asked, own

ASKED_S, GONE_S, LOOK_EVERY_S = 60, 60, 1.0


def main(folder):
    print(json.dumps(leave(folder)))


def leave(folder):
    """Return the jobs that would not go, and for each node why it is not proved that the run's processes have ended."""
    with open(os.path.join(folder, REQUEST)) as file:
        name = json.load(file)["name"]
    there = own(commands.jobs(asked(commands.LIST)), name)
    ended = os.path.join(folder, ENDED)
    if any(job.state not in commands.WAITING for job in there):
        with open(os.path.join(folder, STOP), "w"):
            pass
        wait_until(lambda: os.path.exists(ended), ASKED_S)
    for job in there:
        asked(commands.delete(job.number), accept_any=True)
    for each in (os.path.join(folder, "exit_code"), os.path.join(folder, "stopped")):
        if os.path.exists(each):
            break
    else:
        with open(os.path.join(folder, "stopped"), "w"):
            pass
    wait_until(lambda: not own(commands.jobs(asked(commands.LIST)), name), GONE_S)
    with contextlib.suppress(FileNotFoundError):
        os.remove(os.path.join(folder, CACHE))
    left = [job.number for job in own(commands.jobs(asked(commands.LIST)), name)]
    return {"deleted": [job.number for job in there], "left": left, "nodes": proof(ended, there)}


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
