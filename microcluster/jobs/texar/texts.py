"""The texts that the language model learns: the three files of each, and where they come from."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

TRAIN = "ptb.train.txt"
FILES = (TRAIN, "ptb.valid.txt", "ptb.test.txt")
"""The names that Texar's ``ptb_reader.py`` opens; where one is missing, every rank would download it."""
ORIGINAL_VOCABULARY = 10_000
"""What the same program asserts of the training text, with the end of a line as a word."""
LARGEST_BYTES = 10**9
CORPUS = "file:///opt/microcluster/corpus"
"""Of the local training image."""


@dataclass(frozen=True)
class Text:
    """One text.

    Attributes:
        folder: below the mount point.
        words: about how many different ones it has.
        exactly: whether a text with another number of different words is refused.
        recipe: the tar that holds the files, as agent/staging.py reads it.
    """

    folder: str
    words: int
    exactly: bool
    recipe: Mapping[str, Any]


def _tar(name: str, address: str) -> dict[str, Any]:
    return {"kind": "tar", "archives": [{"name": name, "address": address, "most_bytes": LARGEST_BYTES}]}


TEXTS = {
    # The archive that the example itself names, over https; nobody publishes a sum of it.
    "ptb": Text(
        "ptb",
        ORIGINAL_VOCABULARY,
        exactly=True,
        recipe=_tar("simple-examples.tgz", "https://www.fit.vutbr.cz/~imikolov/rnnlm/simple-examples.tgz"),
    ),
    # The English side of the sentences of Debian's translations, which the local training image carries with their licences.
    "debian-en": Text("debian_en", 1000, exactly=False, recipe=_tar("words.tar", f"{CORPUS}/words.tar")),
    # Of the same sentences, with as many different words as Texar itself insists on.
    "debian-en-10000": Text(
        "debian_en_10000",
        ORIGINAL_VOCABULARY,
        exactly=True,
        recipe=_tar("words-10000.tar", f"{CORPUS}/words-10000.tar"),
    ),
}
