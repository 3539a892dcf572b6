"""Checkpoints and the best models, in TensorFlow's own format, under OpenSeq2Seq's names."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import tensorflow.compat.v1 as tf

KEPT = 5


class Checkpoints:
    """Writes ``model.ckpt-N`` and ``best_models/val_loss=X-step-N``; only the first rank has one.

    As upstream's, it knows nothing of what an earlier process wrote: old checkpoints and best models stay beside its own.
    """

    def __init__(self, params: Mapping[str, Any]) -> None:
        self._folder = params["logdir"]
        kept = params.get("num_checkpoints", KEPT)
        self._saver = tf.train.Saver(max_to_keep=kept, save_relative_paths=True)
        self._best = tf.train.Saver(max_to_keep=kept, save_relative_paths=True)
        self._lowest = float("inf")
        os.makedirs(self._folder, exist_ok=True)

    def write_graph(self) -> None:
        tf.train.write_graph(tf.get_default_graph(), self._folder, "graph.pbtxt")

    def save(self, session: tf.Session, step: int) -> None:
        self._saver.save(session, os.path.join(self._folder, "model.ckpt"), global_step=step)

    def save_if_best(self, session: tf.Session, loss: float, step: int) -> None:
        """Keep the model of an evaluation at ``step`` where no earlier one of this process was better."""
        if loss < self._lowest:
            self._lowest = loss
            folder = os.path.join(self._folder, "best_models")
            os.makedirs(folder, exist_ok=True)
            name = f"val_loss={loss:.4f}-step"
            self._best.save(session, os.path.join(folder, name), global_step=step + 1, latest_filename="checkpoint")


def restore(session: tf.Session, checkpoint: str) -> None:
    """Read all variables back."""
    tf.train.Saver().restore(session, checkpoint)


def restore_for_reading(session: tf.Session, checkpoint: str) -> None:
    """Read the model's own variables for an evaluation or inference."""
    tf.train.Saver(tf.trainable_variables()).restore(session, checkpoint)
