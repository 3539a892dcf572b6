"""Inference: every rank translates its lines, and the first one writes them in the order of the file."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import tensorflow.compat.v1 as tf

from standin.beam_search import beam_search
from standin.graphs import TranslationGraph
from standin.lines import finished_reading, is_told, processed, say
from standin.parallel_text import END, START, Batch, ParallelText
from standin.world import Alone

BENCH_START = 10  # The first batches are not counted in the average time.


class Inference:
    """Translates with the beam of the decoder's parameters; a beam of 1 is greedy."""

    def __init__(self, params: Mapping[str, Any], data: ParallelText, world: Alone) -> None:
        self._graph = TranslationGraph(params, data.vocabulary_size)
        self._rules, self._data, self._world = params["decoder_params"], data, world

    def run(self, session: tf.Session, output: Path) -> None:
        """Write one line of pieces for each source line."""
        lines = self._lines(session)
        shares = self._world.gather(lines, session)
        if self._world.rank == 0:
            ordered = [shares[number % len(shares)][number // len(shares)] for number in range(self._data.lines)]
            output.write_text("".join(f"{line}\n" for line in ordered), encoding="utf-8")

    def _lines(self, session: tf.Session) -> list[str]:
        """Translate sentence by sentence, and tell the progress in upstream's batches."""
        worker, lines, objects, start = self._world.worker, [], 0, time.monotonic()
        batches = list(self._data.in_batches())
        for number, batch in enumerate(batches, start=1):
            if number == BENCH_START + 1:
                start = time.monotonic()
            lines += [self._translate(session, sentence) for sentence in batch]
            objects += sum(sentence.objects for sentence in batch) if number > BENCH_START else 0
            if is_told(number, self._batches_of(batch)):
                say(processed(number, self._batches_of(batch), worker))
        if batches:  # Upstream counts all batches in the size of the last one.
            say(processed(len(batches), self._batches_of(batches[-1]), worker))
        say(finished_reading(len(batches) - BENCH_START, time.monotonic() - start, objects, worker))
        return lines

    def _batches_of(self, batch: Sequence[Batch]) -> int:
        return math.ceil(self._data.lines / len(batch))

    def _translate(self, session: tf.Session, batch: Batch) -> str:
        graph = self._graph
        encoded = session.run(graph.states, {graph.source: batch.source})
        pieces = beam_search(
            lambda prefixes: session.run(
                graph.log_probabilities,
                {graph.source: batch.source, graph.encoded: encoded, graph.prefixes: prefixes},
            ),
            START,
            END,
            beam=self._rules["beam_size"],
            alpha=self._rules["alpha"],
            limit=batch.source.shape[1] + self._rules["extra_decode_length"],
        )
        return self._data.text([piece for piece in pieces if piece != END])
