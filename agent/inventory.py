"""Print which files of a run are worth fetching, with sizes and hashes, as one JSON line.

Arguments: the run's folder, the data set's folder. A file that is still being written is taken as long as it is now.
"""

import hashlib
import json
import os
import subprocess
import sys

from agent import shared_folder, spec
from agent.checkpoint_parts import OVER
from agent.checkpoints import checkpoints_of
from agent.replicator import LIMITED
from agent.run_snapshot import is_alive
from agent.runtimes import runtime_of

RECORDS = (
    "job.json",
    "job.log",
    "progress.jsonl",
    "samples.jsonl",
    "preflight.json",
    "exit_code",
    "failure.json",
)
NEWEST = "newest checkpoint"
PIECE = 1 << 20


def digest(path, size):
    """Return the SHA-256 of a file's first bytes."""
    found, left = hashlib.sha256(), size
    with open(path, "rb") as file:
        while left:
            piece = file.read(min(PIECE, left))
            if not piece:
                break
            found.update(piece)
            left -= len(piece)
    return found.hexdigest()


def names_in(folder):
    return sorted(os.listdir(folder)) if os.path.isdir(folder) else []


def chosen(folder):
    """Return {path below the run's folder: what it is} of records, newest checkpoint and best model, and the newest one's step."""
    run = spec.read(os.path.join(folder, spec.FILE))
    checkpoints = checkpoints_of(run, os.path.join(folder, "logdir"))
    kept = list(RECORDS) + run.files + [name for one in run.artifacts for name in names_below(folder, one)]
    files = dict((name, "record") for name in kept)
    files.update(("logdir/" + name, "events") for name in names_in(checkpoints.logdir) if name.startswith("events."))
    newest, best = checkpoints.newest_whole(), checkpoints.best()
    for name, what in ((newest and newest[1], NEWEST), (best, "best model")):
        files.update(("logdir/" + file, what) for file in (checkpoints.files_of(name) if name else []))
    return files, newest and newest[0]


def names_below(folder, inner):
    """Return the names of all files below an inner folder, relative to the outer one."""
    found = [os.path.join(where, name) for where, _, names in os.walk(os.path.join(folder, inner)) for name in names]
    return sorted(os.path.relpath(path, folder) for path in found)


def gather(folder):
    """Bring what other nodes have written of checkpoints since the run ended; while it goes on, its supervisor does."""
    run = spec.read(os.path.join(folder, spec.FILE))
    others = run.addresses[1:]
    if others and not run.shared and checkpoints_of(run, "").any_node_writes and not is_alive(folder):
        argv = runtime_of(run).here(LIMITED + run.gather + [OVER] + others, False)
        options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        done = subprocess.run(argv, check=False, **options)
        if done.returncode:
            print(
                "what other machines have of the newest checkpoint is not here: " + done.stdout.decode()[-300:],
                file=sys.stderr,
            )


def described(root, name, what):
    path = os.path.join(root, name)
    size = os.path.getsize(path)
    return {"source": path, "size": size, "sha256": digest(path, size), "what": what}


def inventory(folder, data, names):
    found = []
    files, newest = chosen(folder)
    for name, what in sorted(files.items()):
        if os.path.isfile(os.path.join(folder, name)):
            step = {"step": newest} if what == NEWEST else {}
            found.append(dict(described(folder, name, what), path=name, **step))
    for name in names:
        if os.path.isfile(os.path.join(data, name)):
            found.append(dict(described(data, name, "vocabulary"), path="data/" + name))
    return found


def main(folder, data, *names):
    silent = shared_folder.why_checkpoints_silent(folder)
    if silent:
        sys.exit("the drive with the checkpoints does not answer: " + silent)
    gather(folder)
    print(json.dumps(inventory(folder, data, names)))
