"""What a run goes on from: the newest checkpoint that is whole, of this machine or of the one that has the copy.

Python 3.5, it travels to the launcher.
"""

import os
import time

import checkpoints
from at_once import at_once
from copies import MARK

ASK_TIMEOUT_S = 30
BRING_TIMEOUT_S = 1800
READ_TIMEOUT_S = 600
LOW_DISK_FACTOR = 2
UNREADABLE = 3


class NotBroughtBack(Exception):
    """There are copies and none can be had; the argument is a sentence."""


def bring_back(run):
    """Fetch the copy of another machine when it is newer than anything here, as on a launcher that was replaced.

    A run that has nothing here and cannot get its copies does not begin again: its first checkpoint would take their place.
    """
    logdir, others = run.path("logdir"), run.job["addresses"][1:]
    own = checkpoints.newest_whole(logdir)
    refused = []
    steps = at_once(lambda address: step_of_copy(run, address), others)
    for step, address in sorted(zip(steps, others), reverse=True):
        if step <= (own[0] if own else -1):
            break
        code, said = run.ask(run.job["bring"] + [address], BRING_TIMEOUT_S, marked=False)
        event = {"step": step, "from": run.name_of(address), "text": said[-300:]}
        run.tell(dict(event, event="not_brought_back" if code else "brought_back"))
        if not code:
            return
        refused.append("that of step {} on {}: {}".format(step, event["from"], event["text"]))
    if refused and not own:
        raise NotBroughtBack(
            "fetching the copy of a checkpoint: {}. If none is sound any more, remove {} there, and the run begins again".format(
                "; ".join(refused), run.path("copy")
            )
        )


def step_of_copy(run, address):
    """Return the step of the checkpoint that a machine has the copy of; -1 when it has none or does not answer."""
    code, said = run.ask(run.job["copied"] + [address], ASK_TIMEOUT_S, marked=False)
    words = said.partition(MARK)[2].split()
    return int(words[0]) if code == 0 and words else -1


def latest_checkpoint(run):
    """Return the two small files that every rank looks for; a log folder without a whole checkpoint is put aside."""
    logdir = run.path("logdir")
    if not os.path.isdir(logdir) or not os.listdir(logdir):
        os.makedirs(logdir, exist_ok=True)
        return []
    chosen, passed = checkpoints.choose(logdir, run.path("torn"), lambda name: is_readable(run, name))
    for why in passed:
        run.tell({"event": "passed_over", "text": why})
    if not chosen:
        os.rename(logdir, logdir + ".without-checkpoint-" + str(int(time.time())))
        os.makedirs(logdir)
        return []
    step, name = chosen
    make_room(run, name)
    run.write("logdir/" + checkpoints.POINTER, checkpoints.pointer(logdir, name))
    run.tell({"event": "resuming", "step": step, "from": name})
    return ["logdir/" + checkpoints.POINTER, "logdir/" + name + ".index"]


def is_readable(run, name):
    """Return whether the framework can read the checkpoint; a failure of another kind is no verdict on it."""
    argv = run.job["read"] + [run.path("logdir", name)]
    return run.ask(argv, READ_TIMEOUT_S, marked=False)[0] != UNREADABLE


def make_room(run, name):
    """Remove old checkpoints where the next ones would not fit, never the one to go on from."""
    logdir = run.path("logdir")
    size = sum(os.path.getsize(os.path.join(logdir, file)) for file in checkpoints.files_of(logdir, name))
    room = os.statvfs(logdir)
    if room.f_bavail * room.f_frsize < LOW_DISK_FACTOR * size:
        removed = [one for one in checkpoints.prune(logdir) if one != name]
        if removed:
            run.tell({"event": "pruned", "names": removed})
