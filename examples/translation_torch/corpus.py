"""Sentence pairs as numbers: the corpus of the local image, whose split into training and evaluation is fixed."""

import tarfile
from collections import Counter

import torch
from torch.nn.utils.rnn import pad_sequence

PAD, BEGIN, END, UNKNOWN = range(4)
MOST_WORDS = 2000


class Corpus:
    """Pairs of at most ``longest`` words, and the vocabulary of each side: words by their number, the most frequent first."""

    def __init__(self, archive, longest):
        texts = read(archive)
        self.longest = longest
        self.source, self.target = (vocabulary(texts["train." + side]) for side in ("en", "de"))
        self.train, self.eval = (self._pairs(texts, part) for part in ("train", "eval"))

    def batch(self, number, size):
        """Return batch ``number`` of the training, which is the same one in every attempt."""
        chosen = torch.randint(len(self.train), (size,), generator=torch.Generator().manual_seed(number))
        return stacked([self.train[index] for index in chosen.tolist()])

    def validation(self, rank, ranks, most):
        """Return a rank's share of the evaluation."""
        return stacked(self.eval[:most][rank::ranks])

    def _pairs(self, texts, part):
        lines = zip(texts[part + ".en"], texts[part + ".de"], strict=True)
        fitting = [pair for pair in lines if all(0 < len(words) <= self.longest - 2 for words in pair)]
        return [(numbers(source, self.source), numbers(target, self.target)) for source, target in fitting]


def read(archive):
    """Return the words of each line of the archive's files, by their names."""
    with tarfile.open(archive) as tar:
        texts = {member.name: tar.extractfile(member).read().decode() for member in tar}
    return {name: [line.lower().split() for line in text.split("\n")[:-1]] for name, text in texts.items()}


def vocabulary(lines):
    """Return {word: number}; equal counts keep the order of the text, so that every rank counts alike."""
    counted = Counter(word for words in lines for word in words)
    words = [word for word, _ in counted.most_common(MOST_WORDS - END - 2)]
    return {word: number for number, word in enumerate(["", "<s>", "</s>", "<unk>", *words])}


def numbers(words, known):
    return [BEGIN, *(known.get(word, UNKNOWN) for word in words), END]


def stacked(pairs):
    """Return source and target as tensors (pairs, words), filled up with PAD."""
    return tuple(
        pad_sequence([torch.tensor(pair[side]) for pair in pairs], batch_first=True, padding_value=PAD)
        for side in (0, 1)
    )
