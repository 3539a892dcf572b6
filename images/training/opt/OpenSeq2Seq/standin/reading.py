"""What reads a model without changing it: an evaluation of sentence pairs, and inference."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy
import piece_bleu
import tensorflow.compat.v1 as tf

from standin.lines import note, samples, say
from standin.model import EvaluationGraph
from standin.parallel_text import END, PAD, START, Batch, ParallelText, until_end
from standin.world import World


class Evaluation:
    """Every rank passes over as many batches as the whole file has, of its own lines, again and again."""

    def __init__(self, params: Mapping[str, Any], data: ParallelText, world: World) -> None:
        self._graph, self._data, self._world = EvaluationGraph(params, data.vocabulary_size), data, world
        self._mine = tf.placeholder(tf.float32, [2 + piece_bleu.COUNTS])
        self._all = world.total(self._mine)
        self._batches = data.batches()

    def run(self, session: tf.Session, *, verbose: bool = False) -> tuple[float, float]:
        """Return loss and BLEU of all ranks together; ``verbose`` tells the progress, as a run of its own does."""
        sums = numpy.zeros(2 + piece_bleu.COUNTS)
        for number in range(1, self._data.batches_of_file + 1):
            sums += self._one(session, next(self._batches))
            if verbose:
                tell_progress(number, self._data.batches_of_file, self._world)
        loss, pairs, *counts = (float(value) for value in session.run(self._all, {self._mine: sums}))
        return loss / max(1.0, pairs), piece_bleu.score(counts)

    def _one(self, session: tf.Session, batch: Batch) -> numpy.ndarray:
        feed = {self._graph.source: batch.source, self._graph.target: batch.target}
        loss, prediction = session.run([self._graph.loss, self._graph.prediction], feed)
        say(samples("*****EVAL ", sentences(self._data, batch, prediction)))
        rows = zip(prediction, batch.target[:, 1:], strict=True)
        counts = numpy.sum([piece_bleu.counts(until_end(found), until_end(true)) for found, true in rows], axis=0)
        return numpy.concatenate([[loss * len(batch.target), len(batch.target)], counts])


class Inference:
    """Every rank translates all lines, and the first one writes them: nobody infers with several.

    The most likely piece follows, whatever the beam of the configuration.
    """

    def __init__(self, params: Mapping[str, Any], data: ParallelText, world: World) -> None:
        self._graph, self._data, self._world = EvaluationGraph(params, data.vocabulary_size), data, world
        self._further = params["decoder_params"]["extra_decode_length"]

    def run(self, session: tf.Session, output: Path) -> None:
        """Write one line of pieces for each source line."""
        data, lines = self._data, []
        for number in range(data.batches_of_file):
            start = number * data.batch_size
            lines += [self._translate(session, source) for source, _ in data.pairs[start : start + data.batch_size]]
            tell_progress(number + 1, data.batches_of_file, self._world)
        if self._world.first:
            output.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

    def _translate(self, session: tf.Session, source: list[int]) -> str:
        graph, pieces = self._graph, [START]
        while pieces[-1] != END and len(pieces) <= len(source) + self._further:
            # The last of the target is never read: it stands for the piece that is asked for.
            feed = {graph.source: [source], graph.target: [[*pieces, PAD]]}
            pieces.append(int(session.run(graph.prediction, feed)[0, -1]))
        return self._data.text(until_end(pieces[1:]))


def sentences(data: ParallelText, batch: Batch, prediction: numpy.ndarray) -> dict[str, str]:
    """The first pair of a batch and what the model makes of it, as text."""
    rows = {"Source": batch.source[0], "Target": batch.target[0], "Prediction": prediction[0]}
    return {name: data.text(row) for name, row in rows.items()}


def tell_progress(batch: int, batches: int, world: World) -> None:
    """Say on every rank how far a run that only reads has come."""
    say(note(f"Processed {batch}/{batches} batches{world.suffix}"))
