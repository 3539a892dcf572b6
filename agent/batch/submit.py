"""Submit a run to the queue at most once, on the login host. Argument: the run's folder. Prints one line of JSON.

One caller at a time looks and submits: the command of a person whose connection was cut may still run when the next one comes.
"""

import contextlib
import fcntl
import json
import os

from agent.batch import CACHE, ENDED, GRANTED, REQUEST, STOP, commands, records
from agent.batch.asking import asked, own

LOCK = "~/.microcluster/submit.lock"
SCRIPT, LOG = "job.sh", "batch.log"
TEXT = """#!/bin/bash -l
[ ! -r ~/.microcluster/prelude ] || . ~/.microcluster/prelude
exec python3 '{0}/agent' batch.job '{0}'
"""
"""A login shell, because `module` does not exist in any other."""
OF_AN_ATTEMPT = (GRANTED, STOP, ENDED, CACHE, "exit_code", "stopped", "failure.json", "phase", "alive_at")


def main(folder):
    lock = os.path.expanduser(LOCK)
    os.makedirs(os.path.dirname(lock), mode=0o700, exist_ok=True)
    with open(lock, "w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        print(json.dumps(find_or_submit(folder)))


def find_or_submit(folder):
    """Return the number of the run's job and whether it was submitted now; or why the queue refused it."""
    with open(os.path.join(folder, REQUEST)) as file:
        request = json.load(file)
    there = own(commands.jobs(asked(commands.LIST)), request["name"])
    if there:
        records.note(request, there[-1].number, folder)
        return {"job": there[-1].number, "new": False}
    for name in OF_AN_ATTEMPT:
        with contextlib.suppress(FileNotFoundError):
            os.remove(os.path.join(folder, name))
    script = os.path.join(folder, SCRIPT)
    with open(script, "w") as file:
        file.write(TEXT.format(folder))
    os.chmod(script, 0o700)
    output = asked(commands.submit(request, script, os.path.join(folder, LOG)), accept_any=True)
    number = commands.submitted(output)
    if number is None:
        return {"refused": output.strip()[-500:] or "no word"}
    records.note(request, number, folder)
    return {"job": number, "new": True}
