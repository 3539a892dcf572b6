"""Ask the queue on this host, one command of this person at a time where the answer decides what is submitted or deleted."""

import contextlib
import fcntl
import json
import os
import pwd
import subprocess
import time

from agent.batch import commands, records

TIMEOUT_S, SUBMIT_TIMEOUT_S, LOCK_TIMEOUT_S, LOOK_EVERY_S = 60, 150, 150, 0.5
"""Slurm's sbatch tries again for two minutes while the controller takes no job, and so does Torque's qsub."""
LOCK = "~/.microcluster/submit.lock"


class QueueError(Exception):
    """The queue did not answer, or not as it should; the message is a sentence for the person."""


def answer(act):
    """Print as one line of JSON what ``act`` returns, or the sentence in which it fails."""
    try:
        print(json.dumps(act()))
    except (QueueError, OSError) as error:
        print(json.dumps({"failed": str(error)}))


def asked(words, accept_any=False):
    """Return what a command of the queue prints."""
    child = started(words)
    try:
        output = child.communicate(timeout=TIMEOUT_S)[0].decode("utf-8", "replace")
    except subprocess.TimeoutExpired:
        child.kill()
        raise QueueError(
            "{} has not answered for {} s. Run the same command again.".format(words[0], TIMEOUT_S)
        ) from None
    if not (accept_any or commands.is_answer(child.returncode)):
        raise QueueError("{} ended with exit code {}: {}".format(words[0], child.returncode, output.strip()[-500:]))
    return output


def submitted(words, lock):
    """Return what qsub prints. It holds the lock itself: whatever becomes of its caller, nobody submits before it has ended."""
    child = started(words, pass_fds=(lock.fileno(),))
    try:
        return child.communicate(timeout=SUBMIT_TIMEOUT_S)[0].decode("utf-8", "replace")
    except subprocess.TimeoutExpired:
        # Ending it now could not take back what the queue may have accepted.
        raise QueueError(still("qsub (process {})".format(child.pid), SUBMIT_TIMEOUT_S)) from None


def started(words, **more):
    options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "cwd": "/"}
    return subprocess.Popen(words, **dict(options, **more))


def still(what, for_s):
    return (
        "{} has not ended after {} s and may still submit. Run the same command again: it waits for that first.".format(
            what, for_s
        )
    )


@contextlib.contextmanager
def locked():
    """Hold the lock of everybody who submits and deletes; a qsub that outlived its caller has it until it ends."""
    path = os.path.expanduser(LOCK)
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    with open(path, "w") as held:
        deadline = time.monotonic() + LOCK_TIMEOUT_S
        while True:
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    raise QueueError(still("an earlier command of yours on this host", LOCK_TIMEOUT_S)) from None
                time.sleep(LOOK_EVERY_S)
        yield held


def own(jobs, name, folder):
    """Return the living jobs of the run in a folder: this person's, by their name, and by their records where there are any."""
    user, known = pwd.getpwuid(os.getuid()).pw_name, records.everything()
    mine = [job for job in jobs if job.name == name and job.state in commands.LIVING and commands.is_of(job, user)]
    found = [(job, records.record_of(job, known)) for job in mine]
    return [job for job, record in found if record is None or record["folder"] == folder]
