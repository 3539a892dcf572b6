"""What Texar's example has: its three configurations, one more for processors, and the texts that the language model learns."""

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
class Configuration:
    """One configuration, by the names of the stack file.

    Attributes:
        epochs: passes over the training text, which are the run's steps.
        global_batch: rows of text of all ranks together; each rank gets an equal share.
        sequence_length: words of a row in one update.
        keep_prob: of dropout.
        decay_rate, decay_start: the learning rate is multiplied by the one for each epoch after the other.
        clip_norm: of all gradients together.
    """

    epochs: int
    init_scale: float
    hidden_size: int
    keep_prob: float
    global_batch: int
    sequence_length: int
    learning_rate: float
    decay_rate: float
    decay_start: int
    clip_norm: float


LAYERS = 2
FORGET_BIAS = 0.0
CONFIGURATIONS = {
    "tiny": Configuration(8, 0.1, 64, 1.0, 20, 20, 1.0, 0.7, 4, 5.0),
    # The values of Texar's config_small.py, config_medium.py and config_large.py, at the commit of SOURCE.
    "small": Configuration(13, 0.1, 200, 1.0, 20, 20, 1.0, 0.5, 3, 5.0),
    "medium": Configuration(39, 0.05, 650, 0.5, 20, 35, 1.0, 0.8, 5, 5.0),
    "large": Configuration(55, 0.04, 1500, 0.35, 20, 35, 1.0, 1 / 1.15, 14, 10.0),
}


def exchanged_numbers(hidden_size: int, vocabulary_size: int) -> int:
    """Return how many numbers all ranks add up in an update: all but the embedding, whose gradient is sparse."""
    layer = 2 * hidden_size * 4 * hidden_size + 4 * hidden_size
    return LAYERS * layer + (hidden_size + 1) * vocabulary_size


@dataclass(frozen=True)
class Text:
    """One text.

    Attributes:
        folder: below the mount point.
        words: about how many different ones it has.
        recipe: the tar that holds the files, as agent/data/staging.py reads it.
        valid_words: of its shortest file, where Texar itself takes the text. Where that gives a step, the words of an epoch, 929,589 and
            68,723, give ten, and by a tenth of them lm_ptb_distributed.py divides.
    """

    folder: str
    words: int
    recipe: Mapping[str, Any]
    valid_words: int | None = None


def _tar(name: str, address: str) -> dict[str, Any]:
    return {"kind": "tar", "archives": [{"name": name, "address": address, "most_bytes": LARGEST_BYTES}]}


# The archive that the example itself names, over https; nobody publishes a sum of it.
PTB = _tar("simple-examples.tgz", "https://www.fit.vutbr.cz/~imikolov/rnnlm/simple-examples.tgz")
TEXTS = {
    "ptb": Text("ptb", ORIGINAL_VOCABULARY, PTB, 73_760),
    # The English side of the sentences of Debian's translations, which the local training image carries with their licences.
    "debian-en": Text("debian_en", 1000, _tar("words.tar", f"{CORPUS}/words.tar")),
    # Of the same sentences, with as many different words as Texar itself insists on.
    "debian-en-10000": Text(
        "debian_en_10000", ORIGINAL_VOCABULARY, _tar("words-10000.tar", f"{CORPUS}/words-10000.tar"), 4_700
    ),
}
