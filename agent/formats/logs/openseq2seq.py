"""The log of OpenSeq2Seq's run.py, line by line."""

import re
from typing import Match

from agent.formats.logs.ranks import PATTERNS, TAG, Events, RankReader, event_alone, event_with, number, patterns

SAMPLE = re.compile(r"[*\s]*(?:Train|EVAL) (?:Source|Target|Prediction)\[\d+\]:")
"""A sentence that is printed beside its translation, on every rank at each batch of an evaluation."""


class Reader(RankReader):
    """Remembers the step, which stands on another line than the time that it took."""

    def events_in(self, text: str) -> Events:
        return self.matches(text, OWN_PATTERNS + PATTERNS)

    def explains(self, line: str) -> bool:
        """Return whether a line can show why a run failed; a sample sentence cannot."""
        return super().explains(line) and not SAMPLE.match(TAG.sub("", line))

    def train(self, match: Match[str]) -> Events:
        return [self.trained(int(match.group(1)), number(match.group(2)))]

    def time(self, match: Match[str]) -> Events:
        seconds = int(match.group(1)) * 3600 + int(match.group(2)) * 60 + float(match.group(3))
        return [{"event": "time", "step": self.step, "seconds_per_step": round(seconds, 3)}]


OWN_PATTERNS = patterns(
    [
        # A release of 2018 has "loss: x, time per step = ..." or "loss = x" on the line of the step.
        (
            r"[Gg]lobal step COUNT:(?:(?![Gg]lobal step).)*?(?<!Validation )[Ll]oss(?::| =) NUMBER",
            Reader.train,
        ),
        (r"time per step = COUNT:COUNT:(\d{1,18}(?:\.\d{1,3})?)", Reader.time),
        (r"Running evaluation on a validation set", event_alone("evaluation")),
        (r"Validation loss: NUMBER", event_with("validation", "loss")),
        (r"Eval BLUE score: NUMBER", event_with("bleu", "score")),
        (r"Starting training from scratch", event_alone("started")),
        (r"Restored checkpoint from \S*?(?:model\.ckpt|-step)-COUNT", event_with("restored", "step", int)),
        (r"\*\*\* Finished training", event_alone("finished")),
        (r"Avg time per step: NUMBERs", event_with("average_seconds_per_step")),
        (r"Avg objects per second: NUMBER", event_with("average_objects_per_second")),
        (r"Total trainable parameters: COUNT", event_with("parameters", "value", int)),
        (r"\*\*\* (stand-in trainer, not OpenSeq2Seq(?: \(version [^)\s]*\))?)", event_with("trainer", "value", str)),
        (r"\*\*\* (OpenSeq2Seq .+ through our compatibility module)", event_with("trainer", "value", str)),
    ]
)
