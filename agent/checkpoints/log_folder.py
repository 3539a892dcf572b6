"""The checkpoints in a run's log folder, in the format that ``checkpoints`` names in the specification: a module here with its ``Format``.

A checkpoint is everything that belongs to one step, and is named relative to the log folder.
"""

import importlib
import os

from agent import inside, spec
from agent.checkpoints.retention import KEPT
from agent.machine import why_silent

UNREADABLE = 3
NO_CHECKPOINTS = "none"  # The program writes none: a run that ends early starts over.


def checkpoints_of(run, logdir):
    """Return the checkpoints in a log folder, in the format that a run's specification names."""
    if run.checkpoints == NO_CHECKPOINTS:
        return Checkpoints(logdir)
    return importlib.import_module("agent.checkpoints." + run.checkpoints).Format(logdir, run.checkpoint_options)


def checkpoints_in(folder, *below):
    """Return the checkpoints of the run in a folder; ``below`` leads to another log folder in it."""
    return checkpoints_of(
        spec.read(os.path.join(folder, spec.FILE)), os.path.join(inside(folder), *(below or ["logdir"]))
    )


def why_checkpoints_silent(folder):
    """Return why the checkpoints of a run's folder cannot be listed, or an empty text; without a drive there is nothing to ask."""
    logdir = os.path.join(folder, "logdir")
    return why_silent(logdir + "/") if os.path.islink(logdir) else ""


class Checkpoints:
    """The checkpoints in a log folder, of which there are none: a format says which files are one."""

    is_read_back = False
    """Whether ``python agent checkpoints.FORMAT PATH`` reads one back as its program would, and ends with UNREADABLE when that fails."""

    any_node_writes = False
    """Whether any node may write a part of a checkpoint, and only the program can tell whether it loads."""

    lists = ()
    """Files in which the program lists its checkpoints, which are copied with them."""

    def __init__(self, logdir, options=None):
        self.logdir, self.options = logdir, options or {}

    def path(self, name):
        return os.path.join(self.logdir, name)

    def found(self):
        """Return [(step, name)], newest first."""
        return []

    def files_of(self, name):
        """Return those of its files that are there, relative to the log folder."""
        return [file for files in self.kinds_of(name).values() for file in files if os.path.exists(self.path(file))]

    def kinds_of(self, name):
        """Return {kind of file: names}, which need not be there."""
        return {}

    def flaw_of(self, name):
        """Return why it cannot be used, or an empty text."""
        return ""

    def shared_files(self, name):
        """Return files that the program needs with a checkpoint and that others need too: copied with each, and never removed."""
        return []

    def is_best(self, name):
        """Return whether it is the model of an evaluation, which is kept beside the regular checkpoints."""
        return False

    def loss_of(self, name):
        """Return the validation loss of an evaluation's model."""
        return float("inf")

    def step_of(self, name, named):
        """Return how many updates a checkpoint holds that is named by the step ``named``."""
        return named

    def leave(self, files):
        """Do what is left to do when files of a checkpoint were moved or removed."""

    def half_written(self):
        """Return the files that a killed process was just writing."""
        return []

    def prepare(self, name):
        """Let the program go on from a checkpoint; return the files that every node needs for that."""
        return self.files_of(name)

    def newest_whole(self):
        """Return (step, name) of the newest regular checkpoint that was written to its end, or None."""
        return next(((step, name) for step, name in self.found() if self.is_whole(name, best=False)), None)

    def best_whole(self):
        """Return the names of the best models that were written to their end, newest first."""
        return [name for _, name in self.found() if self.is_whole(name, best=True)]

    def best(self):
        """Return the name of the whole best model with the lowest loss, or None."""
        return min(self.best_whole(), key=self.loss_of, default=None)

    def is_whole(self, name, best):
        """Return whether it is one of the best models or of the regular ones, as asked, and was written to its end."""
        return self.is_best(name) == best and not self.flaw_of(name)

    def choose(self, aside, readable, refused=None):
        """Return (step, name) of the newest whole checkpoint or None, and sentences on the newer ones, which are put aside.

        Args:
            aside: the folder for what cannot be used; the newest of it stay there.
            readable: answers whether the program can read the checkpoint back.
            refused: {name: sentence} of what must not be used.
        """
        passed, chosen = [], None
        for step, name in self.found():
            why = self.flaw_of(name) or (refused or {}).get(name, "")
            why = why or ("" if readable(name) else name + ": its tensors cannot be read back")
            if not why:
                chosen = self.step_of(name, step), name
                break
            passed.append(why)
            self._put_aside(name, aside)
        there = type(self)(aside, self.options)
        for _, old in there.found()[KEPT:] if passed else ():
            there.remove(old)
        return chosen, passed

    def _put_aside(self, name, aside):
        """Move a checkpoint out of the log folder, where its name alone would be believed."""
        files = self.files_of(name)
        for file in files:
            target = os.path.join(aside, file)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            os.rename(self.path(file), target)
        self.leave(files)

    def remove(self, name):
        """Remove all files of a checkpoint."""
        files = self.files_of(name)
        for file in files:
            os.remove(self.path(file))
        self.leave(files)
