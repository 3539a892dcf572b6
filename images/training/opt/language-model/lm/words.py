"""The three texts as numbers of words, and their rows, one share for each rank."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy

END = "<EOS>"
Batch = tuple[numpy.ndarray, numpy.ndarray]
"""Words, and the word after each; one row for each sequence."""


@dataclass(frozen=True)
class Texts:
    """Training, validation and test text; words that the training text lacks are left out."""

    train: numpy.ndarray
    valid: numpy.ndarray
    test: numpy.ndarray
    vocabulary_size: int

    @classmethod
    def read(cls, folder: str) -> "Texts":
        """Read the files of a folder; numbers go by how often a word stands in the training text."""
        words = {name: _words(Path(folder) / f"ptb.{name}.txt") for name in ("train", "valid", "test")}
        counted = sorted(Counter(words["train"]).items(), key=lambda item: (-item[1], item[0]))
        number_of = {word: number for number, (word, _) in enumerate(counted)}
        return cls(*(_numbers(words[name], number_of) for name in words), len(number_of))


def batches(text: numpy.ndarray, rows: int, length: int, *, share: int = 0, shares: int = 1) -> Iterator[Batch]:
    """Yield a text as ``rows`` continuous rows, ``length`` words at a time.

    Args:
        share, shares: which equal part of the rows.
    """
    columns = len(text) // rows
    table = text[: rows * columns].reshape(rows, columns)
    own = rows // shares
    table = table[share * own : (share + 1) * own]
    for start in range(0, updates(text, rows, length) * length, length):
        yield table[:, start : start + length], table[:, start + 1 : start + length + 1]


def updates(text: numpy.ndarray, rows: int, length: int) -> int:
    """Return how many batches a pass over the text has."""
    count = (len(text) // rows - 1) // length
    if count < 1:
        raise ValueError(f"a text of {len(text)} words is too short for {rows} rows of {length} words")
    return count


def _words(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").replace("\n", END).split()


def _numbers(words: list[str], number_of: Mapping[str, int]) -> numpy.ndarray:
    return numpy.array([number_of[word] for word in words if word in number_of], dtype=numpy.int32)
