"""Print which files of a run are worth fetching, with sizes and hashes, as one JSON line.

Arguments: the run's folder, the data set's folder. A file that is still being written is taken as long as it is now.
"""

import hashlib
import json
import os

from agent import spec
from agent.checkpoints import checkpoints_of

RECORDS = (
    "job.json",
    "job.log",
    "progress.jsonl",
    "samples.jsonl",
    "preflight.json",
    "exit_code",
    "failure.json",
)
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
    """Return {path below the run's folder: what it is}: the records, the newest checkpoint and the best model."""
    run = spec.read(os.path.join(folder, spec.FILE))
    checkpoints = checkpoints_of(run, os.path.join(folder, "logdir"))
    files = dict((name, "record") for name in list(RECORDS) + run.files)
    files.update(("logdir/" + name, "events") for name in names_in(checkpoints.logdir) if name.startswith("events."))
    newest, best = checkpoints.newest_whole(), checkpoints.best()
    for name, what in ((newest and newest[1], "newest checkpoint"), (best, "best model")):
        files.update(("logdir/" + file, what) for file in (checkpoints.files_of(name) if name else []))
    return files


def described(root, name, what):
    path = os.path.join(root, name)
    size = os.path.getsize(path)
    return {"source": path, "size": size, "sha256": digest(path, size), "what": what}


def inventory(folder, data, names):
    found = []
    for name, what in sorted(chosen(folder).items()):
        if os.path.isfile(os.path.join(folder, name)):
            found.append(dict(described(folder, name, what), path=name))
    for name in names:
        if os.path.isfile(os.path.join(data, name)):
            found.append(dict(described(data, name, "vocabulary"), path="data/" + name))
    return found


def main(folder, data, *names):
    print(json.dumps(inventory(folder, data, names)))
