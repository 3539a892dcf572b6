"""Scalars for TensorBoard."""

from __future__ import annotations

from collections.abc import Mapping

import tensorflow.compat.v1 as tf


class Events:
    """The events file of a folder; only the first rank has one."""

    def __init__(self, folder: str) -> None:
        self._writer = tf.summary.FileWriter(folder, tf.get_default_graph())

    def write(self, scalars: Mapping[str, float], step: int) -> None:
        values = [tf.Summary.Value(tag=tag, simple_value=value) for tag, value in scalars.items()]
        self._writer.add_summary(tf.Summary(value=values), step)
        self._writer.flush()
