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
from agent.batch import CACHE, CHOSEN, ENDED, GRANTED, STOP, commands, grant, records
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
life='{records}'/$number.$began-$$.json
note() {{ echo '{{"id": "'$number'", "started": '$began$1', {record}' >"$life"; }}
note
trap 'note ", \\"ended\\": $(date +%s)"' EXIT
[ ! -r ~/.microcluster/prelude ] || . ~/.microcluster/prelude
exec python3 '{folder}/agent' batch.job '{folder}' "$life"
"""
"""A login shell, because `module` does not exist in any other. A module that is not there ends it, with the time noted."""
OF_AN_ATTEMPT = (GRANTED, STOP, ENDED, CACHE, CHOSEN, STOP_FILE)
OF_ITS_SUPERVISOR = ("exit_code", "failure.json", "phase", "alive_at", "guard.json")


class QueueError(Exception):
    """The queue did not answer, or not as it should; the message is a sentence for the person."""


def asked(words):
    """Return what a command of the queue prints."""
    code, output = kill_run.asked(words, TIMEOUT_S, cwd="/")
    if code == kill_run.NOT_FOUND and not output:
        raise QueueError("there is no {} on this host; is it the queue's login host?".format(words[0]))
    if code == kill_run.TOO_SLOW:
        raise QueueError("{} has not answered for {} s. Run the same command again.".format(words[0], TIMEOUT_S))
    if code not in commands.ANSWERS:
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


def locked():
    """Return the lock of everybody who submits and deletes, held until it is closed; a qsub that outlived its caller has it until it ends."""
    path = os.path.expanduser(LOCK)
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    held = try_lock(path, LOCK_TIMEOUT_S, LOOK_EVERY_S)
    if held is None:
        raise QueueError(still("an earlier command of yours on this host", LOCK_TIMEOUT_S))
    return held


def delete(jobs):
    """Let the queue delete jobs; whether they are gone is what it shows afterwards."""
    for job in jobs:
        kill_run.asked(commands.DELETE + [job.number], TIMEOUT_S, cwd="/")


def in_queue():
    """Return the jobs that the queue shows now."""
    return commands.jobs(asked(commands.LIST))


def living(jobs, request):
    """Return the living ones of a run: this person's, by the name that no run in another folder has."""
    user = pwd.getpwuid(os.getuid()).pw_name
    return [job for job in commands.living(jobs, user) if job.name == request["name"]]


def submit(folder):
    """Return the number of the run's job and whether it was submitted now; or why the queue refused it."""
    with locked() as lock:
        request, output = records.request_in(folder), ""
        there = living(in_queue(), request)
        known = run_snapshot.text_of(os.path.join(folder, CHOSEN))
        if known and known not in [job.number for job in there]:
            delete(there)  # They came late, beside one that has carried out the run and is over.
            there = []
        is_new = not there
        if is_new:
            refuse_in_vain(request, folder)
            for name in OF_AN_ATTEMPT + OF_ITS_SUPERVISOR:
                with contextlib.suppress(FileNotFoundError):
                    os.remove(os.path.join(folder, name))
            script = written(records.intend(request, folder))
            output = qsub(commands.submit(request, script, os.path.join(folder, LOG)), lock)
            there = living(in_queue(), request)
        # A job that runs comes first: it has chosen itself by now.
        there.sort(key=lambda job: job.state in commands.WAITING)
        numbers = [job.number for job in there] or commands.submitted(output)
        if not numbers:
            return {"refused": output.strip()[-500:] or "no word"}
        chosen = records.first(os.path.join(folder, CHOSEN), numbers[0])
        delete([job for job in there if job.number != chosen])
        return {"job": chosen, "new": is_new}


def refuse_in_vain(request, folder):
    """Refuse what has just ended with nothing saved, unless more is asked for: it would end so again."""
    ended = read_json(os.path.join(folder, "failure.json"))
    if not ended.get("sentence", "").startswith(grant.NOTHING_SAVED):
        return
    last = records.last(request) or request
    if request["walltime"] <= last["walltime"] and request["nodes"] <= last["nodes"]:
        raise QueueError(
            "job {} of this run had {} nodes for {:.1f} h and nothing was saved in it, so the same again would be in vain; nothing was "
            "submitted. Give cluster.walltime more (and cluster.queue, where this one grants no more), or let the program save more "
            "often.".format(grant.read(folder).job, last["nodes"], last["walltime"] / 3600.0)
        )


def written(record):
    """Write the job's script; return its path."""
    path, text = os.path.join(record["folder"], SCRIPT), json.dumps(record)
    with open(path, "w") as file:
        file.write(TEXT.format(folder=record["folder"], records=os.path.expanduser(records.FOLDER), record=text[1:]))
    os.chmod(path, 0o700)
    return path


def look(folder):
    return with_queue(run_snapshot.observe(folder), folder, time.time())


def with_queue(seen, folder, now):
    """Return the snapshot of a run as its queue lets it be read: the queue knows whether its job lives, and waits."""
    request = records.request_in(folder)
    if request is None:
        return seen
    jobs = listed(folder, now)
    mine = living(jobs, request)
    if not mine:
        return dict(seen, alive=False)
    job, granted = mine[-1], grant.read(folder)
    marked = os.path.join(folder, "alive_at")
    # The clock in that file is the first node's, so that here only the file's own time says anything.
    silent_s = now - os.path.getmtime(marked) if granted and os.path.exists(marked) else None
    seen = dict(seen, alive=True, silent_s=silent_s)
    if granted and seen["phase"]:
        return seen
    waited_s = max(0.0, now - records.last(request).get("submitted", now))
    return dict(seen, phase="queued", queue=dict(position(jobs, job), job=job.number, waited_s=waited_s))


def position(jobs, mine):
    """Return the place of a job among those that wait in its queue, from 1; 0 for one that does not wait any more."""
    waiting = [job.number for job in jobs if job.queue == mine.queue and job.state in commands.WAITING]
    place = waiting.index(mine.number) + 1 if mine.number in waiting else 0
    return {"queue": mine.queue, "position": place, "waiting": len(waiting)}


def listed(folder, now):
    """Return the jobs that the queue shows, by its answer of a moment ago where there is one in the run's folder."""
    path = os.path.join(folder, CACHE)
    known = read_json(path)
    if not 0 <= now - known.get("at", 0) < FRESH_S:
        known = {"at": now, "jobs": in_queue()}
        write_whole(path, json.dumps(known))
    return [commands.Job(*job) for job in known["jobs"]]


def leave(folder, owner):
    """End a stack's job of the run in a folder; return {node or job: why that is not proved, or an empty text}.

    The job is asked first: it sees every process on its nodes, those too that have left its steps, which qdel would leave behind. Then
    the queue has to show that it is gone. The wish stays in the folder, so that a job that a slow qsub brings later ends itself.
    """
    request = records.request_in(folder)

    def is_ours():
        return records.owner_of(records.last(request) or request) == owner

    if request is None or (living(in_queue(), request) and not is_ours()):
        # Nothing was ever submitted from there, or another stack with a copy of our key carries out the same run in the same folder.
        return {}
    with open(os.path.join(folder, STOP), "w"):
        pass
    with locked():
        return end(request, folder) if is_ours() else {}


def end(request, folder):
    there, ended = living(in_queue(), request), os.path.join(folder, ENDED)
    ran = [job for job in there if job.state not in commands.WAITING]
    if ran:
        wait_until(lambda: os.path.exists(ended), ASKED_S, LOOK_EVERY_S)
    delete(there)
    kill_run.mark_stopped(os.path.dirname(folder), [os.path.basename(folder)])
    wait_until(lambda: not living(in_queue(), request), GONE_S, LOOK_EVERY_S)
    remove_secrets(folder)
    with contextlib.suppress(FileNotFoundError):
        os.remove(os.path.join(folder, CACHE))
    unclear = dict(("job " + job.number, "it is still in the queue") for job in living(in_queue(), request))
    return dict(proof(ended, ran), **unclear)


def proof(ended, ran):
    """Return {node: why} as the job wrote it down; a job that ran and left no word proves nothing."""
    with contextlib.suppress(FileNotFoundError), open(ended) as file:
        return json.load(file)
    return dict(("the nodes of job " + job.number, "it ended without a word of its processes") for job in ran)


VERBS = {"submit": submit, "look": look, "leave": leave}


def main(verb, *words):
    """Print as one line of JSON what a verb returns, or the sentence in which it fails."""
    try:
        print(json.dumps(VERBS[verb](*words)))
    except (QueueError, OSError) as error:
        print(json.dumps({"failed": str(error)}))
