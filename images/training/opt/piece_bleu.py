"""Corpus BLEU (Papineni et al. 2002) over pieces, as counts that ranks can add up, rounded as nltk 3.2.5 rounds it."""

import math
from collections import Counter
from collections.abc import Sequence

MAX_ORDER = 4
COUNTS = 2 * MAX_ORDER + 2
"""Matches and candidates of each order, then the lengths of candidate and reference."""


def counts(candidate: Sequence, reference: Sequence) -> list[int]:
    """The counts of one sentence."""
    matches, totals = [], []
    for order in range(1, MAX_ORDER + 1):
        found, wanted = _ngrams(candidate, order), _ngrams(reference, order)
        matches.append(sum((found & wanted).values()))
        totals.append(max(1, sum(found.values())))  # As nltk: also of a sentence that is too short.
    return [*matches, *totals, len(candidate), len(reference)]


def score(total: Sequence[float]) -> float:
    """BLEU from 0 to 1 of the summed counts of all sentences; a plain 0 where no piece is right."""
    matches, totals = total[:MAX_ORDER], total[MAX_ORDER : 2 * MAX_ORDER]
    length, reference_length = total[2 * MAX_ORDER :]
    if min(matches) == 0:
        return 0.0 if matches[0] else 0
    precision = sum(math.log(match / all_) for match, all_ in zip(matches, totals, strict=True)) / MAX_ORDER
    return round(math.exp(precision + min(0.0, 1 - reference_length / length)), 4)


def _ngrams(row: Sequence, order: int) -> Counter:
    return Counter(tuple(row[start : start + order]) for start in range(len(row) - order + 1))
