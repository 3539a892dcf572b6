"""Which checkpoint a run can go on from.

A checkpoint is named relative to the log folder: ``model.ckpt-100``, or ``best_models/val_loss=1.6-step-101`` of an
evaluation, which holds all variables too.
"""

import os
import re
import shutil

from agent.tf_index import Torn, flaw, global_step

PARTS = (".index", ".meta", ".data-00000-of-00001")
REGULAR = re.compile(r"model\.ckpt-(\d+)\.index$")
BEST = re.compile(r"val_loss=.*-step-(\d+)\.index$")
LOSS = re.compile(r"val_loss=(\d+(?:\.\d+)?)-step-")
HALF_WRITTEN = re.compile(r"\.tempstate\d+$")
"""How TensorFlow names a file until it is whole; a rank that is killed meanwhile leaves it, as large as a checkpoint."""
BEST_FOLDER = "best_models"
POINTER = "checkpoint"
KEPT = 2
"""How many checkpoints of earlier attempts stay: the newest one, and the one before in case that it is bad."""


def all_of(logdir):
    """Return [(step, name)] of everything that looks like a checkpoint, newest first, regular ones before best ones."""
    found = []
    for folder, pattern in (("", REGULAR), (BEST_FOLDER, BEST)):
        path = os.path.join(logdir, folder)
        for name in os.listdir(path) if os.path.isdir(path) else []:
            match = pattern.match(name)
            if match:
                found.append((int(match.group(1)), not folder, os.path.join(folder, name[: -len(".index")])))
    return [(step, name) for step, _, name in sorted(found, reverse=True)]


def files_of(logdir, name):
    """Return the files of a checkpoint that are there, relative to the log folder."""
    return [name + part for part in PARTS if os.path.exists(os.path.join(logdir, name + part))]


def flaw_of(logdir, name):
    """Return why a checkpoint cannot be used, or an empty text."""
    missing = [part for part in PARTS if not os.path.exists(os.path.join(logdir, name + part))]
    if missing:
        return name + " lacks " + " and ".join(missing)
    return flaw(os.path.join(logdir, name))


def newest_whole(logdir):
    """Return (step, name) of the newest regular checkpoint that was written to its end, or None."""
    for step, name in all_of(logdir):
        if not name.startswith(BEST_FOLDER) and not flaw_of(logdir, name):
            return step, name
    return None


def best_whole(logdir):
    """Return the names of the best models that were written to their end, newest first."""
    best = [name for _, name in all_of(logdir) if name.startswith(BEST_FOLDER)]
    return [name for name in best if not flaw_of(logdir, name)]


def choose(logdir, aside, readable):
    """Return (step, name) of the newest whole checkpoint or None, and sentences on the newer ones, which are put aside.

    Args:
        aside: the folder for what cannot be used; only the last such lot is kept, and nothing is thrown away unseen.
        readable: answers whether the framework can read the checkpoint back, with every byte of its tensors.
    """
    passed = []
    for step, name in all_of(logdir):
        why = flaw_of(logdir, name) or ("" if readable(name) else name + ": its tensors cannot be read back")
        if not why:
            return (step_in(logdir, name, step), name), passed
        if not passed:
            shutil.rmtree(aside, ignore_errors=True)
        passed.append(why)
        put_aside(logdir, name, aside)
    return None, passed


def step_in(logdir, name, named):
    """Return how many updates a checkpoint holds: OpenSeq2Seq names a best model by the step after its own."""
    try:
        step = global_step(os.path.join(logdir, name))
    except (Torn, OSError, KeyError):
        return named
    return step if step == named - 1 else named


def put_aside(logdir, name, aside):
    """Move a checkpoint out of the log folder, where its name alone would be believed."""
    for file in files_of(logdir, name):
        target = os.path.join(aside, file)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.rename(os.path.join(logdir, file), target)


def pointer(logdir, name):
    """Return the text of the file ``checkpoint``, which is all that the framework looks at.

    Best models stay out of the list of those that the framework may remove when newer ones come.
    """
    regular = [old for _, old in reversed(all_of(logdir)) if not old.startswith(BEST_FOLDER)]
    lines = ['model_checkpoint_path: "' + name + '"']
    return "\n".join(lines + ['all_model_checkpoint_paths: "' + old + '"' for old in regular]) + "\n"


def prune(logdir, stays=None, kept=KEPT):
    """Remove what earlier attempts have left and return the names: a new attempt of OpenSeq2Seq forgets their checkpoints.

    The newest regular ones stay, the best model with the lowest loss and the newest one, and ``stays``, which is gone on from.
    """
    whole = [name for _, name in all_of(logdir) if not name.startswith(BEST_FOLDER) and not flaw_of(logdir, name)]
    best = best_whole(logdir)
    stay = [stays] + whole[:kept] + best[:1] + sorted(best, key=loss_of)[:1]
    old = [name for name in whole + best if name not in stay]
    for name in old:
        for file in files_of(logdir, name):
            os.remove(os.path.join(logdir, file))
    return old + half_written(logdir)


def half_written(logdir):
    """Remove the files that a killed rank was writing, and return their names; no rank may be at work."""
    found = []
    for folder in ("", BEST_FOLDER):
        path = os.path.join(logdir, folder)
        names = os.listdir(path) if os.path.isdir(path) else []
        found += [os.path.join(folder, name) for name in names if HALF_WRITTEN.search(name)]
    for name in found:
        os.remove(os.path.join(logdir, name))
    return found


def loss_of(name):
    """Return the validation loss in the name of a best model."""
    match = LOSS.search(name)
    return float(match.group(1)) if match else float("inf")
