"""The configurations of the language model: the three that Texar's example has, and a small one for processors."""

from dataclasses import dataclass


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
    # The values of Texar's config_small.py, config_medium.py and config_large.py, at the commit of microcluster/jobs/texar/image.py.
    "small": Configuration(13, 0.1, 200, 1.0, 20, 20, 1.0, 0.5, 3, 5.0),
    "medium": Configuration(39, 0.05, 650, 0.5, 20, 35, 1.0, 0.8, 5, 5.0),
    "large": Configuration(55, 0.04, 1500, 0.35, 20, 35, 1.0, 1 / 1.15, 14, 10.0),
}


def exchanged_numbers(hidden_size: int, vocabulary_size: int) -> int:
    """Return how many numbers all ranks add up in an update: all but the embedding, whose gradient is sparse."""
    layer = 2 * hidden_size * 4 * hidden_size + 4 * hidden_size
    return LAYERS * layer + (hidden_size + 1) * vocabulary_size


def parameters(hidden_size: int, vocabulary_size: int) -> int:
    """Return how many numbers the model has."""
    return exchanged_numbers(hidden_size, vocabulary_size) + hidden_size * vocabulary_size
