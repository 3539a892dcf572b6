"""The log of MXNet's Module.fit and Speedometer, each line behind the name of the worker that wrote it.

A step is an epoch; the batch that it has come to, and its figures so far, show that a long one moves. Up to 1.3 a line has ``Batch [40]``, from 1.4 on ``Batch [20-40]`` (python/mxnet/callback.py of apache/mxnet). Speeds
are added up over all workers; accuracies are the first worker's, which says them of its own share of the data.
"""

import re
from typing import Match

from agent.formats.logs.ranks import NUMBER, PATTERNS, Events, RankReader, event_with, metric, number, patterns

FIRST = ("worker 0", None)
"""The first worker, or a line that bears no name."""
LOSSES = ("cross-entropy", "nll-loss")
PREFIXES = {"Train": "", "Validation": "validation_"}
EPOCH = r"Epoch\[COUNT\] "


class Reader(RankReader):
    """Remembers the speeds that some workers have still to tell."""

    def __init__(self) -> None:
        super().__init__()
        self.at, self.speeds = None, []

    def events_in(self, text: str) -> Events:
        return self.matches(text, SPEED + (OF_FIRST if self.speaker in FIRST else []) + PATTERNS)

    def batch(self, match: Match[str]) -> Events:
        """Return the step once for each epoch, and the speed of all workers together at the batch before."""
        epoch, at = int(match.group(1)), match.group(1, 2)
        events = [self.trained(epoch)] if self.step is None or self.step < epoch else []
        if at != self.at:
            events += self.speed() + [{"event": "batch", "step": epoch, "value": int(match.group(2))}]
            self.at = at
        self.speeds.append(number(match.group(3)))  # Two workers may have no names.
        if self.speaker in FIRST:  # Figures so far, which those of the epoch's end replace; a loss so far is a metric.
            so_far = FIGURE.findall(match.group(4))
            events += [metric(name.replace("-", "_"), epoch + 1, number(value)) for name, value in so_far]
        return events

    def speed(self) -> Events:
        """Return the sum of what the workers have told of a batch: they are in step, so all have when one tells of the next."""
        told, self.speeds = self.speeds, []
        if not told or not all(isinstance(one, float) for one in told):
            return []
        return [metric("samples_per_second", int(self.at[0]), round(sum(told), 2))]

    def figure(self, match: Match[str]) -> Events:
        """Return the loss of an epoch that is over, or another figure, of the training or the validation."""
        step, name, value = int(match.group(1)) + 1, match.group(3), number(match.group(4))
        if name not in LOSSES:
            return [metric(PREFIXES[match.group(2)] + name.replace("-", "_"), step, value)]
        if match.group(2) == "Train":
            return [self.trained(step, value)]
        return [{"event": "validation", "step": step, "loss": value}]

    def epoch_over(self, match: Match[str]) -> Events:
        """Return the step that is done, where no loss has told it, and how long it took."""
        step, seconds = int(match.group(1)) + 1, number(match.group(2))
        events = self.speed()
        if self.step != step:
            events.append(self.trained(step))
        events.append({"event": "time", "step": step, "seconds_per_step": seconds})
        return events + [{"event": "average_seconds_per_step", "value": seconds}]


FIGURE = re.compile(r"\s([\w-]{1,40})=" + NUMBER)
BATCH = r"Batch \[(?:\d{1,18}-)?COUNT\]\s+Speed: NUMBER samples/sec((?:\s+[\w-]{1,40}=NUMBER)*)"
SPEED = patterns([(EPOCH + BATCH, Reader.batch)])
OF_FIRST = patterns(
    [
        (EPOCH + r"(Train|Validation)-([\w-]+)=NUMBER", Reader.figure),
        (EPOCH + r"Time cost=NUMBER", Reader.epoch_over),
        (r"Loaded model \S+?_COUNT\.params", event_with("restored", "step", int)),
    ]
)
