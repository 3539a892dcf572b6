"""Inference: every rank translates its lines, and the first one writes them in the order of the file."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tensorflow.compat.v1 as tf

from standin.beam_search import beam_search
from standin.graphs import TranslationGraph
from standin.lines import note, processed, say
from standin.parallel_text import END, START, Batch, ParallelText
from standin.world import Alone


class Inference:
    """Translates with the beam of the decoder's parameters; a beam of 1 is greedy."""

    def __init__(self, params: Mapping[str, Any], data: ParallelText, world: Alone) -> None:
        self._graph = TranslationGraph(params, data.vocabulary_size)
        self._rules, self._data, self._world = params["decoder_params"], data, world

    def run(self, session: tf.Session, output: Path) -> None:
        """Write one line of pieces for each source line."""
        batches, lines, start = list(self._data.in_order()), [], time.monotonic()
        for number, batch in enumerate(batches, start=1):
            lines.append(self._translate(session, batch))
            if number % max(1, len(batches) // 10) == 0:
                say(processed(number, len(batches), self._world.worker))
        say(note(f"Avg time per step: {(time.monotonic() - start) / max(1, len(batches)):.3}s"))
        shares = self._world.gather(lines, session)
        if self._world.rank == 0:
            ordered = [shares[number % len(shares)][number // len(shares)] for number in range(self._data.lines)]
            output.write_text("".join(f"{line}\n" for line in ordered), encoding="utf-8")

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
