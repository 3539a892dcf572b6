"""Submit a run to the queue at most once, on the login host. Argument: the run's folder. Prints one line of JSON.

One caller at a time looks and submits: the command of a person whose connection was cut, or its qsub, may still run when the next
one comes. Where the queue shows several jobs of the run nevertheless, one is chosen, the others are deleted, and each of them that
starts ends itself.
"""

import contextlib
import json
import os

from agent.batch import BEGUN, CACHE, CHOSEN, ENDED, GRANTED, REQUEST, STOP, asking, commands, grant, records
from agent.records import run_snapshot

SCRIPT, LOG = "job.sh", "batch.log"
TEXT = """#!/bin/bash -l
number=${{PBS_JOBID%%.*}} began=$(date +%s)
life='{folder_of_records}'/$number.$began-$$.json
note() {{ echo '{{"id": "'$number'", "name": "{name}", "started": '$began$1'}}' >"$life"; }}
note
trap 'note ", \\"ended\\": $(date +%s)"' EXIT
[ ! -r ~/.microcluster/prelude ] || . ~/.microcluster/prelude
exec python3 '{folder}/agent' batch.job '{folder}' "$life"
"""
"""A login shell, because `module` does not exist in any other. A module that is not there ends it, with the time noted."""
OF_AN_ATTEMPT = (
    GRANTED,
    STOP,
    ENDED,
    CACHE,
    CHOSEN,
    BEGUN,
    "exit_code",
    "stopped",
    "failure.json",
    "phase",
    "alive_at",
)


def main(folder):
    def act():
        with asking.locked() as lock:
            return find_or_submit(folder, lock)

    asking.answer(act)


def find_or_submit(folder, lock):
    """Return the number of the run's job and whether it was submitted now; or why the queue refused it."""
    with open(os.path.join(folder, REQUEST)) as file:
        request = json.load(file)
    output, there, known = "", living(request, folder), run_snapshot.text_of(os.path.join(folder, CHOSEN))
    if known and known not in [job.number for job in there]:
        for job in there:  # They came late, beside one that has carried out the run and is over.
            asking.asked(commands.delete(job.number), accept_any=True)
        there = []
    is_new = not there
    if is_new:
        refuse_in_vain(request, folder)
        for name in OF_AN_ATTEMPT:
            with contextlib.suppress(FileNotFoundError):
                os.remove(os.path.join(folder, name))
        records.intend(request, folder)
        words = commands.submit(request, written(request, folder), os.path.join(folder, LOG))
        output = asking.submitted(words, lock)
        there = living(request, folder)
    # A job that runs comes first: it has chosen itself by now.
    there.sort(key=lambda job: job.state in commands.WAITING)
    numbers = [job.number for job in there] or [number for number in [commands.submitted(output)] if number]
    if not numbers:
        return {"refused": output.strip()[-500:] or "no word"}
    chosen = records.first(os.path.join(folder, CHOSEN), numbers[0])
    for number in numbers:
        records.note(request, number, folder)
        if number != chosen:
            asking.asked(commands.delete(number), accept_any=True)
    return {"job": chosen, "new": is_new}


def refuse_in_vain(request, folder):
    """Refuse what has just ended with nothing saved, unless more is asked for: it would end so again."""
    ended = run_snapshot.text_of(os.path.join(folder, "failure.json"))
    if not ended or not grant.saved_nothing(json.loads(ended)):
        return
    earlier = [each for each in records.everything() if each["folder"] == folder and each["id"]]
    last = max(earlier, key=lambda each: each["submitted"]) if earlier else request
    if request["walltime"] <= last["walltime"] and request["nodes"] <= last["nodes"]:
        raise asking.QueueError(
            "job {} of this run had {} nodes for {:.1f} h and nothing was saved in it, so the same again would be in vain; nothing was "
            "submitted. Give cluster.walltime more (and cluster.queue, where this one grants no more), or let the program save more "
            "often.".format(last["id"], last["nodes"], last["walltime"] / 3600.0)
        )


def living(request, folder):
    return asking.own(commands.jobs(asking.asked(commands.LIST)), request["name"], folder)


def written(request, folder):
    """Write the job's script; return its path."""
    path, of_records = os.path.join(folder, SCRIPT), os.path.dirname(records.path_of(request, ""))
    with open(path, "w") as file:
        file.write(TEXT.format(folder=folder, name=request["name"], folder_of_records=of_records))
    os.chmod(path, 0o700)
    return path
