"""Checkpoints as TensorFlow writes them: ``model.ckpt-100``, or ``best_models/val_loss=1.6-step-101`` of an evaluation.

A best model holds all variables too.
"""

import os
import re

from agent.checkpoints import Checkpoints
from agent.checkpoints.tf_index import Torn, flaw, global_step
from agent.checkpoints.verify_tensors import main
from agent.whole_file import write_whole

__all__ = ["Format", "main"]

PARTS = (".index", ".meta", ".data-00000-of-00001")
KINDS = ("index", "meta", "data")
REGULAR = re.compile(r"model\.ckpt-(\d+)\.index$")
BEST = re.compile(r"val_loss=.*-step-(\d+)\.index$")
LOSS = re.compile(r"val_loss=(\d+(?:\.\d+)?)-step-")
HALF_WRITTEN = re.compile(r"\.tempstate\d+$")
"""How TensorFlow names a file until it is whole; a rank that is killed meanwhile leaves it, as large as a checkpoint."""
BEST_FOLDER = "best_models"
POINTER = "checkpoint"


class Format(Checkpoints):
    """The checkpoints in a log folder of TensorFlow."""

    lists = (BEST_FOLDER + "/" + POINTER,)

    def found(self):
        """Return [(step, name)] of everything that looks like a checkpoint, newest first, regular ones before best ones."""
        found = []
        for folder, pattern in (("", REGULAR), (BEST_FOLDER, BEST)):
            for name in self._names_in(folder):
                match = pattern.match(name)
                if match:
                    found.append((int(match.group(1)), not folder, os.path.join(folder, name[: -len(PARTS[0])])))
        return [(step, name) for step, _, name in sorted(found, reverse=True)]

    def _names_in(self, folder):
        path = self.path(folder)
        return os.listdir(path) if os.path.isdir(path) else []

    def files_of(self, name):
        return [name + part for part in PARTS if os.path.exists(self.path(name + part))]

    def kinds_of(self, name):
        return dict((kind, [name + part]) for kind, part in zip(KINDS, PARTS))

    def flaw_of(self, name):
        missing = [part for part in PARTS if not os.path.exists(self.path(name + part))]
        return name + " lacks " + " and ".join(missing) if missing else flaw(self.path(name))

    def is_best(self, name):
        return name.startswith(BEST_FOLDER)

    def loss_of(self, name):
        match = LOSS.search(name)
        return float(match.group(1)) if match else float("inf")

    def step_of(self, name, named):
        """Return how many updates a checkpoint holds: OpenSeq2Seq names a best model by the step after its own."""
        try:
            step = global_step(self.path(name))
        except (Torn, OSError, KeyError):
            return named
        return step if step == named - 1 else named

    def half_written(self):
        folders = ("", BEST_FOLDER)
        names = [os.path.join(folder, name) for folder in folders for name in self._names_in(folder)]
        return [name for name in names if HALF_WRITTEN.search(name)]

    def prepare(self, name):
        """Point the framework at a checkpoint; the other nodes only look whether this file and the index are there."""
        write_whole(self.path(POINTER), self.pointer(name))
        return [POINTER, name + PARTS[0]]

    def pointer(self, name):
        """Return the text of the file ``checkpoint``, which is all that the framework looks at.

        Best models stay out of the list of those that the framework may remove when newer ones come.
        """
        regular = [old for _, old in reversed(self.found()) if not self.is_best(old)]
        lines = ['model_checkpoint_path: "' + name + '"']
        return "\n".join(lines + ['all_model_checkpoint_paths: "' + old + '"' for old in regular]) + "\n"
