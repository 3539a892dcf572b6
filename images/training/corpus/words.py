"""The English sentences as the three texts of a language model, in the form of the Penn Treebank's: lower case, a sentence a line."""

import re
from collections import Counter
from collections.abc import Sequence

WORD = re.compile(r"[a-z]+(?:['-][a-z]+)*|[0-9]+|[.,;:!?]")
NUMBER, RARE = "N", "<unk>"
KINDS = 1000  # Of words in the training text, with <unk> and the end of a line.
TREEBANK_KINDS = 10_000  # Of the Penn Treebank; Texar's program trains on no other number.
EVERY = 10  # Of so many sentences one is for validation, and one for the test.
SENTENCES = 8000  # A pass takes seconds on two processors.


def texts(sentences: Sequence[str], kinds: int = KINDS) -> dict[str, str]:
    """Return the texts by name; ``sentences`` are in an order that says nothing of what they are about.

    Where the first sentences hold fewer than ``kinds`` different words, the training text gets each later one that brings another.
    """
    split = [words for words in map(_words, sentences[:SENTENCES]) if words]
    parts = {
        "train": [words for number, words in enumerate(split) if number % EVERY > 1],
        "valid": split[0::EVERY],
        "test": split[1::EVERY],
    }
    known_words = {word for words in parts["train"] for word in words}
    for words in map(_words, sentences[SENTENCES:]):
        if len(known_words) >= kinds - 1:
            break
        if not known_words.issuperset(words):
            parts["train"].append(words)
            known_words.update(words)
    counted = Counter(word for words in parts["train"] for word in words)
    often = sorted(counted, key=lambda word: (-counted[word], word))[: kinds - 2]
    known = frozenset(often)
    return {name: "".join(_line(words, known) for words in part) for name, part in parts.items()}


def _words(sentence: str) -> list[str]:
    return [NUMBER if word.isdigit() else word for word in WORD.findall(sentence.lower())]


def _line(words: Sequence[str], known: frozenset[str]) -> str:
    """A blank on both sides of a line keeps its end a word of its own."""
    return f" {' '.join(word if word in known else RARE for word in words)} \n"
