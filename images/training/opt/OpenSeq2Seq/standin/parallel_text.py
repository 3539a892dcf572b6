"""The parallel text files of a data layer as padded batches of numbers, one share for each rank."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy

PAD, END, START, UNKNOWN = 0, 1, 2, 3
MARKERS = 2  # Start and end of a sentence.
EIGHT = 8  # Tensor cores like multiples of eight; the contract demands them of the vocabulary.


@dataclass(frozen=True)
class Batch:
    """Sentence pairs as rows of piece numbers, padded at the right."""

    source: numpy.ndarray
    target: numpy.ndarray

    @property
    def objects(self) -> int:
        """Source and target pieces, without padding."""
        return int((self.source != PAD).sum() + (self.target != PAD).sum())


class ParallelText:
    """One rank's lines of a data layer."""

    def __init__(self, layer: Mapping[str, Any], batch_size: int, rank: int, size: int) -> None:
        self._layer, self.batch_size = layer, batch_size
        self._delimiter = layer.get("delimiter", " ")
        self._random = numpy.random.default_rng()
        vocabulary = Path(layer["src_vocab_file"]).read_text(encoding="utf-8").split("\n")
        self.pieces = [line.split("\t")[0] for line in vocabulary if line]  # A line is a piece, a tab and its score.
        room = EIGHT if layer.get("pad_vocab_to_eight") else 1
        self.vocabulary_size = math.ceil(len(self.pieces) / room) * room
        sources, targets = self._numbers(layer["source_file"]), self._numbers(layer["target_file"])
        self.batches_of_file = math.ceil(len(sources) / batch_size)
        self.pairs = list(zip(sources, targets, strict=True))[rank::size]

    def batches(self) -> Iterator[Batch]:
        """Batches without end, or until the lines are used up where the layer does not repeat."""
        order = numpy.arange(len(self.pairs))
        while True:
            if self._layer["shuffle"]:
                self._random.shuffle(order)
            for start in range(0, len(order), self.batch_size):
                pairs = [self.pairs[index] for index in order[start : start + self.batch_size]]
                yield Batch(_rows([source for source, _ in pairs]), _rows([target for _, target in pairs]))
            if not self._layer["repeat"]:
                return

    def text(self, row: Sequence[int]) -> str:
        """The pieces of a row up to its end mark."""
        ending = [END] if END in row else []
        pieces = [self.pieces[number] if number < len(self.pieces) else "<pad>" for number in until_end(row) + ending]
        return self._delimiter.join(pieces)

    def _numbers(self, path: str) -> list[list[int]]:
        number_of = {piece: number for number, piece in enumerate(self.pieces)}
        room = self._layer["max_length"] - MARKERS
        lines = Path(path).read_text(encoding="utf-8").splitlines()
        return [
            [START, *(number_of.get(piece, UNKNOWN) for piece in line.split(self._delimiter)[:room]), END]
            for line in lines
        ]


def until_end(row: Sequence[int]) -> list[int]:
    """The numbers before a row's end mark."""
    return list(takewhile(lambda number: number != END, map(int, row)))


def _rows(sentences: Sequence[list[int]]) -> numpy.ndarray:
    rows = numpy.full((len(sentences), max(map(len, sentences))), PAD, dtype=numpy.int32)
    for row, sentence in zip(rows, sentences, strict=True):
        row[: len(sentence)] = sentence
    return rows
