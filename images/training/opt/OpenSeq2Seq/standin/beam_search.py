"""Beam search over one sentence; a beam of one is greedy decoding."""

from __future__ import annotations

from collections.abc import Callable

import numpy

Prefixes = numpy.ndarray
LogProbabilities = numpy.ndarray


def beam_search(
    step: Callable[[Prefixes], LogProbabilities], start: int, end: int, *, beam: int, alpha: float, limit: int
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
