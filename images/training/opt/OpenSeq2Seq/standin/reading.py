"""What reads a model without changing it: an evaluation of sentence pairs, and inference with a beam."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy
import piece_bleu
import tensorflow.compat.v1 as tf

from standin.lines import is_told, note, samples, say
from standin.model import EvaluationGraph, TranslationGraph
from standin.parallel_text import END, START, Batch, ParallelText, until_end
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
    """Every rank translates all lines, and the first one writes them: nobody infers with several; a beam of 1 is greedy."""

    def __init__(self, params: Mapping[str, Any], data: ParallelText, world: World) -> None:
        self._graph = TranslationGraph(params, data.vocabulary_size)
        self._rules, self._data, self._world = params["decoder_params"], data, world

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
        graph, rules = self._graph, self._rules
        fixed = {graph.source: [source], graph.encoded: session.run(graph.states, {graph.source: [source]})}

        def step(prefixes: numpy.ndarray) -> numpy.ndarray:
            return session.run(graph.log_probabilities, {**fixed, graph.prefixes: prefixes})

        limit = len(source) + rules["extra_decode_length"]
        pieces = beam_search(step, START, END, beam=rules["beam_size"], alpha=rules["alpha"], limit=limit)
        return self._data.text(until_end(pieces))


def beam_search(
    step: Callable[[numpy.ndarray], numpy.ndarray], start: int, end: int, *, beam: int, alpha: float, limit: int
) -> list[int]:
    """Return the best sentence without its start.

    Args:
        step: gives for each row of prefixes the log probabilities of the next piece.
        alpha: strength of the length penalty ((5 + n) / 6) ** alpha (Wu et al. 2016, equation 14).
        limit: most pieces that are generated.
    """
    prefixes, scores = numpy.array([[start]], dtype=numpy.int32), numpy.zeros(1)
    finished: list[tuple[float, list[int]]] = []
    for length in range(1, limit + 1):
        candidates = scores[:, None] + step(prefixes)
        chosen = numpy.argsort(-candidates, axis=None, kind="stable")[: 2 * beam]
        rows, pieces = numpy.unravel_index(chosen, candidates.shape)
        grown, values = numpy.column_stack([prefixes[rows], pieces]).astype(numpy.int32), candidates[rows, pieces]
        done = pieces == end
        penalty = ((5 + length) / 6) ** alpha
        finished += [(value / penalty, list(row[1:])) for row, value in zip(grown[done], values[done], strict=True)]
        prefixes, scores = grown[~done][:beam], values[~done][:beam]
        finished = sorted(finished, key=lambda entry: -entry[0])[:beam]
        hopeless = len(finished) == beam and finished[-1][0] >= scores[0] / ((5 + limit) / 6) ** alpha
        if hopeless:
            break
    return [int(piece) for piece in (finished[0][1] if finished else prefixes[0][1:])]


def sentences(data: ParallelText, batch: Batch, prediction: numpy.ndarray) -> dict[str, str]:
    """The first pair of a batch and what the model makes of it, as text."""
    rows = {"Source": batch.source[0], "Target": batch.target[0], "Prediction": prediction[0]}
    return {name: data.text(row) for name, row in rows.items()}


def tell_progress(batch: int, batches: int, world: World) -> None:
    """Say on every rank how far a run that only reads has come."""
    if is_told(batch, batches):
        say(note(f"Processed {batch}/{batches} batches{world.suffix}"))
