"""The parallel text files of a data layer as padded batches of numbers, one share for each rank."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

import numpy

from standin.configuration import Params

PAD, END, START, UNKNOWN = 0, 1, 2, 3
MARKERS = 2  # Start and end of a sentence.


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
    """One rank's lines of a mode's data layer."""

    def __init__(self, params: Params, rank: int = 0, ranks: int = 1) -> None:
        self._layer, self._batch_size = params["data_layer_params"], params["batch_size_per_gpu"]
        self._random = numpy.random.default_rng()
        vocabulary = Path(self._layer["src_vocab_file"]).read_text(encoding="utf-8").split("\n")
        self._pieces = [line.split("\t")[0] for line in vocabulary if line]  # A line is a piece, a tab and its score.
        self.vocabulary_size = len(self._pieces)
        sources, targets = self._numbers("source_file"), self._numbers("target_file")
        self.batches_of_file = math.ceil(len(sources) / self._batch_size)
        self.pairs = list(zip(sources, targets, strict=True))[rank::ranks]

    def batches(self) -> Iterator[Batch]:
        """Batches without end."""
        order = numpy.arange(len(self.pairs))
        while True:
            if self._layer["shuffle"]:
                self._random.shuffle(order)
            for start in range(0, len(order), self._batch_size):
                pairs = [self.pairs[index] for index in order[start : start + self._batch_size]]
                sources, targets = zip(*pairs, strict=True)
                yield Batch(_rows(sources), _rows(targets))

    def text(self, row: Sequence[int]) -> str:
        """The pieces of a row up to its end mark, which it keeps."""
        ending = [END] if END in row else []
        return " ".join(self._pieces[number] for number in until_end(row) + ending)

    def _numbers(self, file: str) -> list[list[int]]:
        number_of = {piece: number for number, piece in enumerate(self._pieces)}
        longest, rows = self._layer["max_length"] - MARKERS, []
        for line in Path(self._layer[file]).read_text(encoding="utf-8").splitlines():
            numbers = [number_of.get(piece, UNKNOWN) for piece in line.split(" ")[:longest]]
            rows.append([START, *numbers, END])
        return rows


def until_end(row: Sequence[int]) -> list[int]:
    """The numbers before a row's end mark."""
    return list(takewhile(lambda number: number != END, map(int, row)))


def _rows(sentences: Sequence[list[int]]) -> numpy.ndarray:
    rows = numpy.full((len(sentences), max(map(len, sentences))), PAD, dtype=numpy.int32)
    for row, sentence in zip(rows, sentences, strict=True):
        row[: len(sentence)] = sentence
    return rows
