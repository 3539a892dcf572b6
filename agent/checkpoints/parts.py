"""Checkpoints of which several nodes write parts, each on its own disk; runs on the launcher, which keeps all parts.

Arguments: the run's folder and ``gather STEP NODE...``, which brings what is missing here (STEP is the newest one that has a replica, or
OVER while no rank trains), or ``give NODE FILE...``, which lets the log folder of a node hold these files and no other part of a checkpoint.
"""

import fcntl
import inspect
import json
import os
import shutil
import subprocess
import sys

from agent import spec
from agent.checkpoints import being_written
from agent.checkpoints.log_folder import checkpoints_in
from agent.checkpoints.replica import MARK, CopyFailed, ask, receive_files, send_files
from agent.machine import read_json, write_whole

OVER = "over"
GATHERED = "gathered.json"
"""{file of a checkpoint: the node that it came from}."""
REMOVE = 'cd "$0" && xargs -0 -r rm -f -- && find . -mindepth 1 -type d -empty -delete'


def gather(run, kept, *nodes):
    """Bring the parts of checkpoints that other nodes have written; print how many files came."""
    checkpoints = checkpoints_in(run)
    silent, count = [], 0
    with open(os.path.join(run, GATHERED + ".lock"), "w") as lock:  # Whoever fetches the run gathers too.
        fcntl.flock(lock, fcntl.LOCK_EX)
        gathered = read_json(os.path.join(run, GATHERED))
        for node in nodes:
            try:
                there = listed(run, node)
                if kept != OVER:
                    forget(checkpoints, gathered, node, there, int(kept))
                names = wanted(checkpoints, there, 0 if kept == OVER else being_written.STABLE_S)
                bring(run, node, names)
            except CopyFailed as error:
                silent.append(error.args[0])
                continue
            gathered.update((name, node) for name in names)
            write_whole(os.path.join(run, GATHERED), json.dumps(gathered))
            count += len(names)
    if silent:
        raise CopyFailed("; ".join(silent))
    print(MARK + str(count))


def wanted(checkpoints, there, age_s):
    """Return what is missing here of the checkpoints that are here, and of newer ones that were written so long ago.

    An older one was removed by the program, and of a newer one it may be about to make the folder.
    """
    steps, names = set(step for step, _ in checkpoints.found()), []
    for name, (_, _, age) in sorted(there.items()):
        part = checkpoints.part_of(name) if age is not None and not os.path.lexists(checkpoints.path(name)) else None
        if part and (part[0] in steps or (part[0] > max(steps, default=-1) and age >= age_s)):
            names.append(name)
    return names


def forget(checkpoints, gathered, node, there, kept):
    """Remove the gathered files of steps before ``kept`` that their node has removed, as programs do that keep the last ones only."""
    gone = [name for name in gathered if gathered[name] == node and name not in there]
    gone = [name for name in gone if checkpoints.part_of(name)[0] < kept]
    for name in gone:
        del gathered[name]
        if os.path.lexists(checkpoints.path(name)):
            os.remove(checkpoints.path(name))
    checkpoints.leave(gone)


def bring(run, node, names):
    """Move files of a node's log folder into the one here, each at once."""
    if not names:
        return
    logdir, arriving = os.path.join(run, "logdir"), os.path.join(run, "gathered")
    shutil.rmtree(arriving, ignore_errors=True)
    os.mkdir(arriving)
    receive_files(run, node, logdir, names, arriving)
    for name in names:
        home = os.path.join(logdir, name)
        os.makedirs(os.path.dirname(home), exist_ok=True)
        os.rename(os.path.join(arriving, name), home)


def give(run, node, *names):
    """Let the log folder of a node hold these files and no other part of a checkpoint; what is the same there is not sent again."""
    there = listed(run, node)
    others = sorted(set(there) - set(name[len("logdir/") :] for name in names))
    checkpoints = checkpoints_in(run)
    if checkpoints.any_node_writes:  # What the program has written there beside its checkpoints is nowhere else.
        others = [name for name in others if checkpoints.part_of(name)]
    ask(run, node, "rm", ["sh", "-c", REMOVE, os.path.join(run, "logdir")], "\0".join(others))
    absent = [name for name in names if there.get(name[len("logdir/") :], [])[:2] != same(os.path.join(run, name))]
    if absent:
        send_files(run, node, absent, "tar", ["tar", "-C", run, "-xf", "-"])


def same(path):
    """Return what a file and its copy have in common."""
    found = os.stat(path)
    return [found.st_size, int(found.st_mtime)]


def listed(run, node):
    """Return what lies in a node's log folder, see `agent.checkpoints.being_written`; the node need not have this program yet."""
    argv = ["python", "-", os.path.join(run, "logdir")]
    return json.loads(ask(run, node, "list", argv, inspect.getsource(being_written)).splitlines()[-1])


VERBS = {"gather": gather, "give": give}


def main(run, verb, *arguments):
    try:
        VERBS[verb](run, *arguments)
    except (CopyFailed, spec.SpecError, OSError, subprocess.CalledProcessError) as error:
        sys.exit(str(error))
