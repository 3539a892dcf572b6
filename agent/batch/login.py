"""What a person's commands do at the queue, on the login host: submit a run at most once, look at it, end its job and prove it.

Arguments: ``submit FOLDER``, ``look FOLDER`` or ``leave FOLDER OWNER`` (STACK-MARK). Prints one line of JSON.

One command at a time submits or deletes: that of a person whose connection was cut, or its qsub, may still run when the next one comes.
Where the queue shows several jobs of the run nevertheless, one is chosen, the others are deleted, and each of them that starts ends itself.
"""

import contextlib
import json
import os
import pwd
import subprocess
import time

from agent import kill_run
from agent.batch import BEGUN, CACHE, CHOSEN, ENDED, GRANTED, STOP, commands, grant, records
from agent.batch.job import remove_secrets
from agent.kill_run import STOP_FILE
from agent.machine import read_json, try_lock, wait_until, write_whole
from agent.records import run_snapshot

TIMEOUT_S, SUBMIT_TIMEOUT_S, LOCK_TIMEOUT_S, LOOK_EVERY_S = 60, 150, 150, 0.5
"""Slurm's sbatch tries again for two minutes while the controller takes no job, and so does Torque's qsub."""
ASKED_S, GONE_S = 60, 60
FRESH_S = 10
"""Who watches looks every second or two; the queue is asked less often."""
LOCK = "~/.microcluster/submit.lock"
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
OF_AN_ATTEMPT = (GRANTED, STOP, ENDED, CACHE, CHOSEN, BEGUN) + (
    "exit_code",
    STOP_FILE,
    "failure.json",
    "phase",
    "alive_at",
    "guard.json",
)
NOTHING = {"left": [], "nodes": {}}


class QueueError(Exception):
    """The queue did not answer, or not as it should; the message is a sentence for the person."""


def asked(words, accept_any=False):
    """Return what a command of the queue prints."""
    code, output = kill_run.asked(words, TIMEOUT_S, cwd="/")
    if code == kill_run.NOT_FOUND and not output:
        raise QueueError("there is no {} on this host; is it the queue's login host?".format(words[0]))
    if code == kill_run.TOO_SLOW:
        raise QueueError("{} has not answered for {} s. Run the same command again.".format(words[0], TIMEOUT_S))
    if not (accept_any or commands.is_answer(code)):
        raise QueueError("{} ended with exit code {}: {}".format(words[0], code, output.strip()[-500:]))
    return output


def qsub(words, lock):
    """Return what qsub prints. It holds the lock itself: whatever becomes of its caller, nobody submits before it has ended."""
    options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "cwd": "/"}
    child = subprocess.Popen(words, pass_fds=(lock.fileno(),), **options)
    try:
        return child.communicate(timeout=SUBMIT_TIMEOUT_S)[0].decode("utf-8", "replace")
    except subprocess.TimeoutExpired:
        # Ending it now could not take back what the queue may have accepted.
        raise QueueError(still("qsub (process {})".format(child.pid), SUBMIT_TIMEOUT_S)) from None


def still(what, for_s):
    sentence = "{} has not ended after {} s and may still submit. Run the same command again: it waits for that first."
    return sentence.format(what, for_s)


@contextlib.contextmanager
def locked():
    """Hold the lock of everybody who submits and deletes; a qsub that outlived its caller has it until it ends."""
    path = os.path.expanduser(LOCK)
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    held = try_lock(path, LOCK_TIMEOUT_S, LOOK_EVERY_S)
    if held is None:
        raise QueueError(still("an earlier command of yours on this host", LOCK_TIMEOUT_S))
    with held:
        yield held


def in_queue():
    """Return the jobs that the queue shows now."""
    return commands.jobs(asked(commands.LIST))


def living(jobs, request, folder):
    """Return (job, owner or None without a record) of the living ones of a run: this person's, by their name and their records."""
    user, known, found = pwd.getpwuid(os.getuid()).pw_name, records.everything(), []
    for job in jobs:
        if job.name == request["name"] and job.state in commands.LIVING and commands.is_of(job, user):
            record = records.record_of(job, known)
            if record is None or record["folder"] == folder:
                found.append((job, record and records.owner_of(record)))
    return found


def submit(folder):
    """Return the number of the run's job and whether it was submitted now; or why the queue refused it."""
    with locked() as lock:
        request, output = records.request_in(folder), ""
        there = [job for job, _ in living(in_queue(), request, folder)]
        known = run_snapshot.text_of(os.path.join(folder, CHOSEN))
        if known and known not in [job.number for job in there]:
            for job in there:  # They came late, beside one that has carried out the run and is over.
                asked(commands.delete(job.number), accept_any=True)
            there = []
        is_new = not there
        if is_new:
            refuse_in_vain(request, folder)
            for name in OF_AN_ATTEMPT:
                with contextlib.suppress(FileNotFoundError):
                    os.remove(os.path.join(folder, name))
            records.intend(request, folder)
            output = qsub(commands.submit(request, written(request, folder), os.path.join(folder, LOG)), lock)
            there = [job for job, _ in living(in_queue(), request, folder)]
        # A job that runs comes first: it has chosen itself by now.
        there.sort(key=lambda job: job.state in commands.WAITING)
        numbers = [job.number for job in there] or [number for number in [commands.submitted(output)] if number]
        if not numbers:
            return {"refused": output.strip()[-500:] or "no word"}
        chosen = records.first(os.path.join(folder, CHOSEN), numbers[0])
        for number in numbers:
            records.note(request, number, folder)
            if number != chosen:
                asked(commands.delete(number), accept_any=True)
        return {"job": chosen, "new": is_new}


def refuse_in_vain(request, folder):
    """Refuse what has just ended with nothing saved, unless more is asked for: it would end so again."""
    ended = run_snapshot.text_of(os.path.join(folder, "failure.json"))
    if not ended or not grant.saved_nothing(json.loads(ended)):
        return
    earlier = [each for each in records.everything() if each["folder"] == folder and each["id"]]
    last = max(earlier, key=lambda each: each["submitted"]) if earlier else request
    if request["walltime"] <= last["walltime"] and request["nodes"] <= last["nodes"]:
        raise QueueError(
            "job {} of this run had {} nodes for {:.1f} h and nothing was saved in it, so the same again would be in vain; nothing was "
            "submitted. Give cluster.walltime more (and cluster.queue, where this one grants no more), or let the program save more "
            "often.".format(last["id"], last["nodes"], last["walltime"] / 3600.0)
        )


def written(request, folder):
    """Write the job's script; return its path."""
    path, of_records = os.path.join(folder, SCRIPT), os.path.dirname(records.path_of(request, ""))
    with open(path, "w") as file:
        file.write(TEXT.format(folder=folder, name=request["name"], folder_of_records=of_records))
    os.chmod(path, 0o700)
    return path


def look(folder):
    return with_queue(run_snapshot.observe(folder), folder, time.time())


def with_queue(seen, folder, now):
    """Return the snapshot of a run as its queue lets it be read: the queue knows whether its job lives, and waits."""
    request = records.request_in(folder)
    if request is None:
        return seen
    jobs = [commands.Job(*job) for job in listed(folder, now)]
    mine = [job for job, _ in living(jobs, request, folder)]
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
    with contextlib.suppress(OSError):
        if 0 <= now - os.path.getmtime(path) < FRESH_S:
            known = read_json(path)
            if known != {}:  # An empty list is an answer too.
                return known
    rows = in_queue()
    write_whole(path, json.dumps(rows))
    return rows


def leave(folder, owner):
    """Return the jobs that would not go, and for each node why it is not proved that the run's processes have ended.

    The job is asked first: it sees every process on its nodes, those too that have left its steps, which qdel would leave behind. Then
    the queue has to show that it is gone. The wish stays in the folder, so that a job that a slow qsub brings later ends itself.
    """
    request = records.request_in(folder)

    def ours():
        return [job for job, whose in living(in_queue(), request, folder) if whose in (None, owner)]

    if request is None or any(whose not in (None, owner) for _, whose in living(in_queue(), request, folder)):
        # Nothing was ever submitted from there, or another stack with a copy of our key carries out the same run in the same folder.
        return NOTHING
    leave_word(folder, STOP)
    with locked():
        return end(folder, ours)


def end(folder, look_again):
    there, ended = look_again(), os.path.join(folder, ENDED)
    if any(job.state not in commands.WAITING for job in there):
        wait_until(lambda: os.path.exists(ended), ASKED_S, LOOK_EVERY_S)
    for job in there:
        asked(commands.delete(job.number), accept_any=True)
    if not any(os.path.exists(os.path.join(folder, each)) for each in ("exit_code", STOP_FILE)):
        leave_word(folder, STOP_FILE)
    wait_until(lambda: not look_again(), GONE_S, LOOK_EVERY_S)
    remove_secrets(folder)
    with contextlib.suppress(FileNotFoundError):
        os.remove(os.path.join(folder, CACHE))
    return {"left": [job.number for job in look_again()], "nodes": proof(ended, there)}


def leave_word(folder, name):
    """Leave a file that others only look for; two commands may do so at the same time."""
    with open(os.path.join(folder, name), "w"):
        pass


def proof(ended, there):
    """Return {node: why} as the job wrote it down; a job that ran and left no word proves nothing."""
    with contextlib.suppress(FileNotFoundError), open(ended) as file:
        return json.load(file)
    ran = [job.number for job in there if job.state not in commands.WAITING]
    return {"the nodes of job " + number: "it ended without a word of its processes" for number in ran}


VERBS = {"submit": submit, "look": look, "leave": leave}


def main(verb, *words):
    """Print as one line of JSON what a verb returns, or the sentence in which it fails."""
    try:
        print(json.dumps(VERBS[verb](*words)))
    except (QueueError, OSError) as error:
        print(json.dumps({"failed": str(error)}))
