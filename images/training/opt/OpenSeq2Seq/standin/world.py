"""The ranks of a run: alone, or as many as mpirun started, averaged by Horovod."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf


class Alone:
    """A world of one rank, without Horovod."""

    rank, size = 0, 1
    worker: int | None = None
    """What this rank is called in log lines; None without Horovod."""

    def mean(self, tensor: tf.Tensor) -> tf.Tensor:
        return tensor

    def total(self, tensor: tf.Tensor) -> tf.Tensor:
        return tensor

    def equalise(self) -> tf.Operation:
        """The operation that gives every rank the first one's variables."""
        return tf.no_op()

    def gather(self, value: Any, _: tf.Session) -> list[Any]:
        return [value]


class HorovodWorld(Alone):
    """The ranks of this mpirun; without one, a Horovod world of one."""

    def __init__(self) -> None:
        import horovod.tensorflow as hvd  # noqa: PLC0415 -- a run without Horovod must not load it

        hvd.init()
        self._hvd = hvd
        self.rank, self.size, self.worker = hvd.rank(), hvd.size(), hvd.rank()

    def mean(self, tensor: tf.Tensor) -> tf.Tensor:
        return self._hvd.allreduce(tensor, op=self._hvd.Average)

    def total(self, tensor: tf.Tensor) -> tf.Tensor:
        return self._hvd.allreduce(tensor, op=self._hvd.Sum)

    def equalise(self) -> tf.Operation:
        return self._hvd.broadcast_global_variables(0)

    def gather(self, value: Any, session: tf.Session) -> list[Any]:
        return self._hvd.allgather_object(value, session=session)
