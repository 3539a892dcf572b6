"""Lists what of a run is worth bringing home, with sizes and hashes, as one JSON line.

Arguments: the run's folder, the data set's folder. A file that is still being written is taken as long as it is now.
"""

import hashlib
import json
import os
import re
import sys

RECORDS = (
    "config.py",
    "job.json",
    "job.log",
    "progress.jsonl",
    "samples.jsonl",
    "preflight.json",
    "exit_code",
    "failure.json",
)
DATA = ("m_common.model", "m_common.vocab", "SHA256SUMS")
PARTS = (".index", ".meta", ".data-00000-of-00001")
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


def wholes(names, pattern):
    """Return (number, name) of the checkpoints of which every part is there; the number is what ``pattern`` finds."""
    found = []
    for name in names:
        match = re.match(pattern + r"\.index$", name)
        stem = name[: -len(PARTS[0])]
        if match and all(stem + part in names for part in PARTS):
            found.append((float(match.group(1)), stem))
    return found


def chosen(folder):
    """Return {path below the run's folder: what it is}: the records, the newest checkpoint and the best model."""
    logdir = os.path.join(folder, "logdir")
    names, best = names_in(logdir), names_in(os.path.join(logdir, "best_models"))
    files = {name: "record" for name in RECORDS}
    files.update(("logdir/" + name, "events") for name in names if name.startswith("events."))
    regular = wholes(names, r"model\.ckpt-(\d+)")
    if regular:
        files.update(("logdir/" + max(regular)[1] + part, "newest checkpoint") for part in PARTS)
    scored = wholes(best, r"val_loss=(\d+\.\d+)-step-\d+")
    if scored:
        files.update(("logdir/best_models/" + min(scored)[1] + part, "best model") for part in PARTS)
    return files


def described(root, name, what):
    path = os.path.join(root, name)
    size = os.path.getsize(path)
    return {"source": path, "size": size, "sha256": digest(path, size), "what": what}


def inventory(folder, data):
    found = []
    for name, what in sorted(chosen(folder).items()):
        if os.path.isfile(os.path.join(folder, name)):
            found.append(dict(described(folder, name, what), path=name))
    for name in DATA:
        if os.path.isfile(os.path.join(data, name)):
            found.append(dict(described(data, name, "vocabulary"), path="data/" + name))
    return found


def main(folder, data):
    print(json.dumps(inventory(folder, data)))


if __name__ == "__main__":
    main(*sys.argv[1:])
