"""Reading the log of OpenSeq2Seq's run.py line by line.

Ranks share one stream: a line of one can land in the middle of another's, NCCL, Horovod and mpirun write in between. So the tags
of mpirun go first, and then every event is looked for anywhere in the line, as often as it stands there.
"""

import math
import re

TAG = re.compile(r"\[\d+,(\d+)\]<std(?:out|err|diag)>:")
COUNT = r"(\d{1,18})"
NUMBER = r"([-+]?(?:[nN]a[nN]|inf|\d+(?:\.\d+)?(?:[eE][-+]?\d+)?))"
CHECKPOINT = r"\S*?(?:model\.ckpt|-step)-"
NOBODY = -1
SAMPLE = re.compile(r"[*\s]*(?:Train|EVAL) (?:Source|Target|Prediction)\[\d+\]:")
"""A sentence that is printed beside its translation, on every rank at each batch of an evaluation."""
MISSING = re.compile(r"Missing ranks:\s*$")
MISSING_RANK = re.compile(r"\s*" + COUNT + r"!?: \[.*\]\s*$")
"""Below the heading of Horovod 0.18 and later, one line for each rank that the others wait for."""


class Reader:
    """Turns lines into events; it remembers what stands on an earlier line: the step, a rank that failed, a heading of Horovod."""

    def __init__(self):
        self.step = self.failed_rank = None
        self.waited_for, self.list_of = set(), NOBODY

    def read(self, line):
        """Return the events of one line in their order, most often none; an event is a dict with the key "event"."""
        text = TAG.sub("", line)
        if self.list_of == rank_of(line):
            missing = MISSING_RANK.match(text)
            if missing:
                return self._waits_for([int(missing.group(1))])
            self.list_of = NOBODY
        if MISSING.search(text):
            self.list_of = rank_of(line)
        found = [(match.start(), take, match) for pattern, take in PATTERNS for match in pattern.finditer(text)]
        return [event for _, take, match in sorted(found, key=lambda one: one[0]) for event in take(self, match)]

    def train(self, match):
        self.step, self.waited_for = int(match.group(1)), set()
        return [{"event": "train", "step": self.step, "loss": _number(match.group(2))}]

    def time(self, match):
        seconds = int(match.group(1)) * 3600 + int(match.group(2)) * 60 + float(match.group(3))
        return [{"event": "time", "step": self.step, "seconds_per_step": round(seconds, 3)}]

    def failed(self, match):
        self.failed_rank = int(match.group(1))
        return []

    def failed_code(self, match):
        rank, self.failed_rank = self.failed_rank, None
        return [] if rank is None else [{"event": "rank-died", "rank": rank, "exit_code": int(match.group(1))}]

    def killed(self, match):
        rank, node, number = int(match.group(1)), match.group(2), int(match.group(3))
        return [{"event": "rank-died", "rank": rank, "node": node, "signal": number}]

    def missing(self, match):
        return self._waits_for([int(rank) for rank in match.group(1).split(",")])

    def batches(self, match):
        return [{"event": "batches", "done": int(match.group(1)), "of": int(match.group(2))}]

    def _waits_for(self, ranks):
        """Return an event for each rank that is not waited for already: Horovod repeats itself every minute for every tensor."""
        new = [rank for rank in ranks if rank not in self.waited_for]
        self.waited_for.update(new)
        return [{"event": "waited-for", "rank": rank} for rank in new]


def rank_of(line):
    """Return the rank that wrote a line which ``mpirun --tag-output`` has passed on, or None."""
    tag = TAG.match(line)
    return int(tag.group(1)) if tag else None


def explains(line):
    """Return whether a line can tell why a run failed: a blank line or a sample sentence cannot."""
    text = TAG.sub("", line)
    return bool(text.strip()) and not SAMPLE.match(text)


def _said(event):
    return lambda reader, match: [{"event": event}]


def _with(event, key, kind):
    return lambda reader, match: [{"event": event, key: kind(match.group(1))}]


def _number(text):
    """Return a float, or the word for nan and the infinities, which JSON cannot hold."""
    value = float(text)
    return value if math.isfinite(value) else str(value)


PATTERNS = [
    (re.compile(pattern), take)
    for pattern, take in (
        # A release of 2018 has "loss: x, time per step = ..." or "loss = x" on the line of the step.
        (
            r"[Gg]lobal step " + COUNT + r":(?:(?![Gg]lobal step).)*?(?<!Validation )[Ll]oss(?::| =) " + NUMBER,
            Reader.train,
        ),
        (r"time per step = " + COUNT + ":" + COUNT + r":(\d{1,18}(?:\.\d{1,3})?)", Reader.time),
        (r"Running evaluation on a validation set", _said("evaluation")),
        (r"Validation loss: " + NUMBER, _with("validation", "loss", _number)),
        (r"Eval BLUE score: " + NUMBER, _with("bleu", "score", _number)),
        (r"Starting training from scratch", _said("started")),
        (r"Restored checkpoint from " + CHECKPOINT + COUNT, _with("restored", "step", int)),
        (r"\*\*\* Finished training", _said("finished")),
        (r"\*\*\* Not enough steps for benchmarking", _said("not_measured")),
        (r"Processed " + COUNT + "/" + COUNT + " batches", Reader.batches),
        (r"Avg time per step: " + NUMBER + "s", _with("average_seconds_per_step", "value", _number)),
        (r"Avg objects per second: " + NUMBER, _with("average_objects_per_second", "value", _number)),
        (r"Total trainable parameters: " + COUNT, _with("parameters", "value", int)),
        (r"\*\*\* Finished (evaluation|inference)", _with("read", "value", str)),
        (r"Loading model from (" + CHECKPOINT + r"\d+)", _with("loaded", "value", str)),
        (r"\*\*\* (stand-in trainer, not OpenSeq2Seq(?: \(version [^)\s]*\))?)", _with("trainer", "value", str)),
        (r"\*\*\* (OpenSeq2Seq .+ through our compatibility module)", _with("trainer", "value", str)),
        # mpirun, of ranks and machines that are gone; rank and exit code stand on two lines.
        (r"process rank " + COUNT + r" with PID \d+ on node (\S+) exited on signal " + COUNT, Reader.killed),
        (r"Process name: \[\[\d+,\d+\]," + COUNT + r"\]", Reader.failed),
        (r"MPI_ABORT was invoked on rank " + COUNT, Reader.failed),
        (r"(?:Exit code: +|with errorcode )(-?\d{1,18})", Reader.failed_code),
        (r"Remote daemon: \[\[\d+,\d+\],\d+\] on node (\S+)", _with("node-lost", "node", str)),
        # NCCL says the same of shared memory, which is no disk.
        (r"(?i)(?<!fallocate failed : )No space left on device", _said("disk-full")),
        # Horovod up to 0.17, of ranks that keep the others waiting.
        (r"\[missing ranks: (\d{1,18}(?:, ?\d{1,18})*)\]", Reader.missing),
    )
]
