"""The log of Texar's distributed language model; a step is an epoch.

TensorFlow's logger and the one below it both print every line, and every rank prints its own epochs. Only the first rank's lines
make events, and a line that is repeated makes none. A loss is the logarithm of a perplexity. Lines are those of
examples/distributed_gpu/lm_ptb_distributed.py at the commit of microcluster/jobs/texar.py.
"""

import math
import re
from typing import Match

from agent.formats.logs.ranks import PATTERNS, Events, Number, RankReader, event_with, metric, number, patterns

LOGGERS = re.compile(r"INFO:tensorflow:|I\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ \S+?:\d+\] ")
"""Beginnings of lines by the two loggers."""
FIRST = (0, None)
"""The first rank, or a line that bears no rank."""


class Reader(RankReader):
    """Remembers the epoch, the time of the last pass over a text, and the line before."""

    def __init__(self) -> None:
        super().__init__()
        self.epoch, self.elapsed, self.last = 0, None, ""

    def events_in(self, text: str) -> Events:
        found = self.matches(text, PATTERNS)
        if self.speaker not in FIRST:
            return found
        said, repeated = LOGGERS.sub("", text).strip(), self.last
        self.last = said
        return found if said == repeated else found + self.matches(said, OWN_PATTERNS)

    def under_way(self, match: Match[str]) -> Events:
        now = self.epoch + 1
        speed = metric("words_per_second", now, number(match.group(2)))
        return [metric("perplexity", now, number(match.group(1))), speed]

    def passed(self, match: Match[str]) -> Events:
        self.elapsed = float(match.group(1))
        return []

    def trained_epoch(self, match: Match[str]) -> Events:
        """Return the epoch's loss, and the time of its training alone: evaluations are timed apart."""
        self.epoch = int(match.group(1)) + 1
        perplexity = metric("perplexity", self.epoch, number(match.group(2)))
        events = [self.trained(self.epoch, loss(match.group(2))), perplexity]
        if self.elapsed is not None:
            pace = {"event": "time", "step": self.epoch, "seconds_per_step": round(self.elapsed, 3)}
            events.append(dict(pace, training_only=True))
        return events

    def validated(self, match: Match[str]) -> Events:
        step = int(match.group(1)) + 1
        evaluated = {"event": "validation", "step": step, "loss": loss(match.group(2))}
        return [evaluated, metric("validation_perplexity", step, number(match.group(2)))]

    def tested(self, match: Match[str]) -> Events:
        return [metric("test_perplexity", self.epoch, number(match.group(1)))]

    def restored(self, match: Match[str]) -> Events:
        self.epoch = int(match.group(1))
        return [{"event": "restored", "step": self.epoch}]


def loss(perplexity: str) -> Number:
    """Return the loss of a word, or the word for one that JSON cannot hold."""
    value = number(perplexity)
    return value if isinstance(value, str) or value <= 0 else round(math.log(value), 6)


OWN_PATTERNS = patterns(
    [
        (r"\d\.\d{3} perplexity: NUMBER speed: COUNT wps", Reader.under_way),
        (r"epoch time elapsed: (\d+(?:\.\d+)?)", Reader.passed),
        (r"Epoch: COUNT Train Perplexity: NUMBER", Reader.trained_epoch),
        (r"Epoch: COUNT Valid Perplexity: NUMBER", Reader.validated),
        (r"Test Perplexity: NUMBER", Reader.tested),
        # Of our own program, and of what runs Texar's locally.
        (r"Restored checkpoint from \S*?model\.ckpt-COUNT", Reader.restored),
        (r"(stand-in language model, not Texar(?: \(version [^)\s]*\))?)", event_with("trainer", "value", str)),
        (r"\*\*\* (Texar .+ through our compatibility module)", event_with("trainer", "value", str)),
    ]
)
