"""Evaluation: every rank passes over as many batches as the whole file has, of its own lines, again and again."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy
import tensorflow.compat.v1 as tf

from standin import bleu
from standin.graphs import EvaluationGraph
from standin.lines import finished_reading, is_told, processed, samples, say
from standin.parallel_text import END, Batch, ParallelText
from standin.world import Alone

BENCH_START = 10  # The first batches are not counted in the average time.


@dataclass(frozen=True)
class Result:
    """What all ranks found together."""

    loss: float
    bleu: float


class Evaluation:
    """Evaluates the model of a session, on all ranks at once."""

    def __init__(self, graph: EvaluationGraph, data: ParallelText, world: Alone) -> None:
        self._graph, self._data, self._world = graph, data, world
        self._mine = tf.placeholder(tf.float32, [2 + bleu.COUNTS])
        self._all = world.total(self._mine)
        self._batches: Iterator[Batch] = data.batches()

    def run(self, session: tf.Session, *, verbose: bool = False) -> Result:
        """Evaluate once; ``verbose`` tells the progress and the time, as a run of its own does."""
        count = self._data.batches_of(1, whole_file=True)
        sums, start, objects = numpy.zeros(2 + bleu.COUNTS), time.monotonic(), 0
        for number in range(1, count + 1):
            batch = next(self._batches)
            if number == BENCH_START + 1:
                start = time.monotonic()
            sums += self._one(session, batch)
            objects += batch.objects if number > BENCH_START else 0
            if verbose and is_told(number, count):
                say(processed(number, count, self._world.worker))
        if verbose:
            say(processed(count, count, self._world.worker))
            say(finished_reading(count - BENCH_START, time.monotonic() - start, objects, self._world.worker))
        total = session.run(self._all, {self._mine: sums})
        return Result(float(total[0] / max(1.0, total[1])), bleu.score([float(value) for value in total[2:]]))

    def _one(self, session: tf.Session, batch: Batch) -> numpy.ndarray:
        feed = {self._graph.source: batch.source, self._graph.target: batch.target}
        loss, prediction = session.run([self._graph.loss, self._graph.prediction], feed)
        say(samples("*****EVAL ", sentences(self._data, batch, prediction)))
        rows = zip(prediction, batch.target[:, 1:], strict=True)
        counts = numpy.sum([bleu.counts(_until_end(found), _until_end(true)) for found, true in rows], axis=0)
        return numpy.concatenate([[loss * len(batch.target), len(batch.target)], counts])


def sentences(data: ParallelText, batch: Batch, prediction: numpy.ndarray) -> dict[str, str]:
    """The first pair of a batch and what the model makes of it, as text."""
    rows = {"Source": batch.source[0], "Target": batch.target[0], "Prediction": prediction[0]}
    return {name: data.text(row) for name, row in rows.items()}


def _until_end(row: Sequence[int]) -> list[int]:
    numbers = [int(number) for number in row]
    return numbers[: numbers.index(END)] if END in numbers else numbers
