"""The commands of a person at the queue, on the login host: submit a run at most once, look at it, end its job and prove it.

Arguments: ``submit``, ``look`` or ``leave``, and what is asked of the queue for the run, as JSON. Prints one line of JSON.

One command at a time submits or deletes: that of a person whose connection was cut, or its qsub, may still run when the next one comes.
Where the queue shows several jobs of the run nevertheless, one is chosen, the others are deleted, and each of them that starts ends itself.
"""

import contextlib
import json
import os
import pwd
import subprocess
import time
from typing import IO, Any, Dict, Iterable, List

from agent import kill_run
from agent.batch import commands, records
from agent.batch.job import CHOSEN, NOTHING_SAVED, choose, remove_secrets
from agent.kill_run import STOP_FILE
from agent.machine import read_json, try_lock, wait_until, write_whole
from agent.records import run_snapshot
from agent.run.queue_nodes import ENDED, GRANTED, STOP

TIMEOUT_S, SUBMIT_TIMEOUT_S, LOCK_TIMEOUT_S, LOOK_EVERY_S = 60, 150, 150, 0.5
"""Slurm's sbatch tries again for two minutes while the controller takes no job, and so does Torque's qsub."""
ASKED_S, GONE_S = 60, 60
CACHE, FRESH_S = "qstat.json", 10
"""The rows of qstat as they were a moment ago: who watches looks every second or two, and the queue is asked less often."""
STILL = "{} has not ended after {} s and may still submit. Run the same command again: it waits for that first."
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


def in_queue() -> List[commands.Job]:
    """Return the jobs that the queue shows now."""
    code, output = kill_run.asked(commands.LIST, TIMEOUT_S, cwd="/")
    if code == kill_run.NOT_FOUND and not output:
        raise QueueError("there is no qstat on this host; is it the queue's login host?")
    if code not in commands.ANSWERS:
        raise QueueError("qstat ended with exit code {}: {}. Try again.".format(code, output.strip()[-500:]))
    return commands.jobs(output)


def qsub(words: List[str], lock: IO[Any]) -> str:
    """Return what qsub prints. It holds the lock itself: whatever becomes of its caller, nobody submits before it has ended."""
    options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "cwd": "/"}
    child = subprocess.Popen(words, pass_fds=(lock.fileno(),), **options)
    try:
        return child.communicate(timeout=SUBMIT_TIMEOUT_S)[0].decode("utf-8", "replace")
    except subprocess.TimeoutExpired:
        # Ending it now could not take back what the queue may have accepted.
        raise QueueError(STILL.format("qsub (process {})".format(child.pid), SUBMIT_TIMEOUT_S)) from None


def locked() -> IO[Any]:
    """Return the lock of everybody who submits and deletes, held until it is closed; a qsub that outlived its caller has it until it ends."""
    path = os.path.expanduser("~/.microcluster/submit.lock")
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    held = try_lock(path, LOCK_TIMEOUT_S, LOOK_EVERY_S)
    if held is None:
        raise QueueError(STILL.format("an earlier command of yours on this host", LOCK_TIMEOUT_S))
    return held


def delete(jobs: Iterable[commands.Job]) -> None:
    """Let the queue delete jobs; whether they are gone is what it shows afterwards."""
    for job in jobs:
        kill_run.asked(commands.DELETE + [job.number], TIMEOUT_S, cwd="/")


def living(jobs: Iterable[commands.Job], request: Dict[str, Any]) -> List[commands.Job]:
    """Return the living ones of a run: this person's, by the name that no run in another folder has."""
    user = pwd.getpwuid(os.getuid()).pw_name
    return [job for job in commands.living(jobs, user) if job.name == request["name"]]


def submit(request: Dict[str, Any]) -> Dict[str, Any]:
    """Return the number of the run's job, and whether it was submitted now."""
    folder = request["folder"]
    link = os.path.join(folder, CHOSEN)
    with locked() as lock:
        there, output = living(in_queue(), request), ""
        if os.path.islink(link) and os.readlink(link) not in [job.number for job in there]:
            delete(there)  # They came late, beside one that has carried out the run and is over.
            there = []
        is_new = not there
        if is_new:
            refuse_in_vain(request)
            for name in OF_AN_ATTEMPT + OF_ITS_SUPERVISOR:
                with contextlib.suppress(FileNotFoundError):
                    os.remove(os.path.join(folder, name))
            script = written(records.intend(request))
            output = qsub(commands.submit(request, script, os.path.join(folder, "batch.log")), lock)
            there = living(in_queue(), request)
        numbers = [job.number for job in there] or commands.submitted(output)
        if not numbers:
            sentence = "it was refused: {}. Change the cluster section of the stack file, then try again."
            raise QueueError(sentence.format(output.strip()[-500:] or "no word"))
        chosen = choose(folder, numbers[0])
        delete([job for job in there if job.number != chosen])
        return {"job": chosen, "new": is_new}


def refuse_in_vain(request: Dict[str, Any]) -> None:
    """Refuse what has just ended with nothing saved, unless more is asked for: it would end so again."""
    folder, last = request["folder"], records.last(request)
    ended = read_json(os.path.join(folder, "failure.json")).get("sentence", "")
    is_more = request["walltime"] > last["walltime"] or request["nodes"] > last["nodes"]
    if ended.startswith(NOTHING_SAVED) and not is_more:
        raise QueueError(
            "job {} of this run had {} nodes for {:.1f} h and nothing was saved in it, so the same again would be in vain; nothing was "
            "submitted. Give cluster.walltime more (and cluster.queue, where this one grants no more), or let the program save more "
            "often.".format(os.readlink(os.path.join(folder, CHOSEN)), last["nodes"], last["walltime"] / 3600.0)
        )


def written(record: Dict[str, Any]) -> str:
    """Write the job's script; return its path."""
    path, text = os.path.join(record["folder"], "job.sh"), json.dumps(record)
    with open(path, "w") as file:
        file.write(TEXT.format(folder=record["folder"], records=os.path.expanduser(records.FOLDER), record=text[1:]))
    os.chmod(path, 0o700)
    return path


def look(request: Dict[str, Any]) -> Dict[str, Any]:
    """Return the snapshot of a run as its queue lets it be read: the queue knows whether its job lives, and waits."""
    folder, now = request["folder"], time.time()
    seen, jobs = run_snapshot.observe(folder), listed(folder, now)
    mine = living(jobs, request)
    seen["alive"] = bool(mine)
    marked = os.path.join(folder, "alive_at")
    if os.path.exists(marked):  # The clock in it is the first node's: here only the file's own time says anything.
        seen["silent_s"] = now - os.path.getmtime(marked)
    if seen["phase"] or not mine:
        return seen
    job = mine[-1]
    waiting = [each.number for each in jobs if each.queue == job.queue and each.state in commands.WAITING]
    place = waiting.index(job.number) + 1 if job.number in waiting else 0
    known = {"job": job.number, "queue": job.queue, "position": place, "waiting": len(waiting)}
    waited_s = max(0.0, now - records.last(request).get("submitted", now))
    return dict(seen, phase="queued", queue=dict(known, waited_s=waited_s))


def listed(folder: str, now: float) -> List[commands.Job]:
    """Return the jobs that the queue shows, by its answer of a moment ago where there is one in the run's folder."""
    path = os.path.join(folder, CACHE)
    known = read_json(path)
    if not 0 <= now - known.get("at", 0) < FRESH_S:
        known = {"at": now, "jobs": in_queue()}
        write_whole(path, json.dumps(known))
    return [commands.Job(*job) for job in known["jobs"]]


def leave(request: Dict[str, Any]) -> Dict[str, str]:
    """End the job of a stack's run; return {node: why that is not proved, or an empty text}.

    The job is asked first: it sees every process on its nodes, those too that have left its steps, which qdel would leave behind. Then
    the queue has to show that it is gone. The wish stays in the folder, so that a job that a slow qsub brings later ends itself.
    """

    def is_ours() -> bool:
        # Another stack with a copy of our key may carry out the same run in the same folder.
        return records.owner_of(records.last(request)) == records.owner_of(request)

    if is_ours():
        with open(os.path.join(request["folder"], STOP), "w"):
            pass
    with locked():
        return end(request) if is_ours() else {}


def end(request: Dict[str, Any]) -> Dict[str, str]:
    folder = request["folder"]
    ended = os.path.join(folder, ENDED)
    there = living(in_queue(), request)
    ran = [job for job in there if job.state not in commands.WAITING]
    if ran:
        wait_until(lambda: os.path.exists(ended), ASKED_S, LOOK_EVERY_S)
    delete(there)
    kill_run.mark_stopped(os.path.dirname(folder), [os.path.basename(folder)])
    remove_secrets(folder)
    if not wait_until(lambda: not living(in_queue(), request), GONE_S, LOOK_EVERY_S):
        numbers = ", ".join(job.number for job in there)
        raise QueueError("job {} is still there after qdel. Run the same command again.".format(numbers))
    with contextlib.suppress(FileNotFoundError):
        os.remove(os.path.join(folder, CACHE))
    if os.path.exists(ended):
        return read_json(ended)
    return dict(("the nodes of job " + job.number, "it ended without a word of its processes") for job in ran)


def main(verb: str, request: str) -> None:
    """Print as one line of JSON what a verb returns, or the sentence in which it fails."""
    try:
        print(json.dumps({"submit": submit, "look": look, "leave": leave}[verb](json.loads(request))))
    except (QueueError, OSError) as error:
        print(json.dumps({"failed": str(error)}))
