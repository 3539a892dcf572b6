"""The ranks of a run: one alone, or as many as mpirun started, averaged by Horovod."""

import tensorflow.compat.v1 as tf

from standin.lines import note, say


class World:
    """Where a rank stands, and what it exchanges with the others; without Horovod it is alone."""

    def __init__(self, *, horovod: bool) -> None:
        self._hvd, self.rank, self.size, self.suffix = None, 0, 1, ""
        if horovod:
            import horovod.tensorflow as hvd  # noqa: PLC0415 -- a run without Horovod must not load it

            hvd.init()
            self._hvd, self.rank, self.size, self.suffix = hvd, hvd.rank(), hvd.size(), f" on worker {hvd.rank()}"
            self.note("Using horovod")

    @property
    def first(self) -> bool:
        return self.rank == 0

    def note(self, text: str) -> None:
        """Say something once, on the first rank."""
        if self.first:
            say(note(text))

    def built(self) -> None:
        """Say on every rank that its graph is there."""
        if self._hvd:
            say(note(f"Building graph in Horovod rank: {self.rank}"))

    def mean(self, tensor: tf.Tensor) -> tf.Tensor:
        return self._hvd.allreduce(tensor, op=self._hvd.Average) if self._hvd else tensor

    def total(self, tensor: tf.Tensor) -> tf.Tensor:
        return self._hvd.allreduce(tensor, op=self._hvd.Sum) if self._hvd else tensor

    def equalize(self) -> tf.Operation:
        """The operation that gives every rank the first one's variables."""
        return self._hvd.broadcast_global_variables(0) if self._hvd else tf.no_op()
