"""Reading the log of OpenSeq2Seq's run.py line by line; Python 3.5 syntax, because this file travels to the launcher."""

import re

TAG = re.compile(r"\[\d+,(\d+)\]<std(?:out|err|diag)>:\s?")
NUMBER = r"([-+]?(?:nan|inf|\d+(?:\.\d+)?(?:[eE][-+]?\d+)?))"
TRAIN = re.compile(r"[Gg]lobal step (\d+):.*?Train loss: " + NUMBER)
STEP_TIME = re.compile(r"time per step = (\d+):(\d+):(\d+(?:\.\d+)?)")
EVALUATION = re.compile(r"Running evaluation on a validation set")
VALIDATION = re.compile(r"Validation loss: " + NUMBER)
BLEU = re.compile(r"Eval BLUE score: " + NUMBER)
START = re.compile(r"Starting training from scratch")
RESTORE = re.compile(r"Restored checkpoint from \S*model\.ckpt-(\d+)|Restored checkpoint from \S*-step-(\d+)")
FINISHED = re.compile(r"\*\*\* Finished training")
AVERAGE_TIME = re.compile(r"Avg time per step: " + NUMBER + "s")
AVERAGE_OBJECTS = re.compile(r"Avg objects per second: " + NUMBER)
PARAMETERS = re.compile(r"Total trainable parameters: (\d+)")
NOT_MEASURED = re.compile(r"\*\*\* Not enough steps for benchmarking")
BATCHES = re.compile(r"Processed (\d+)/(\d+) batches(?: on worker (\d+))?")
READ = re.compile(r"\*\*\* Finished (evaluation|inference)")
LOADED = re.compile(r"Loading model from (\S+)")
KILLED = re.compile(r"process rank (\d+) with PID \d+ on node (\S+) exited on signal (\d+)")
FAILED_RANK = re.compile(r"Process name: \[\[\d+,\d+\],(\d+)\]")
FAILED_CODE = re.compile(r"Exit code:\s+(\d+)")
LOST = re.compile(r"Remote daemon: \[\[\d+,\d+\],\d+\] on node (\S+)")
FULL = re.compile(r"No space left on device", re.IGNORECASE)
STAND_IN = re.compile(r"\*\*\* (stand-in trainer, not OpenSeq2Seq.*)")


class Reader:
    """Turns lines into events; it remembers the step, because loss and time stand on two lines."""

    def __init__(self):
        self.step = self.failed_rank = None

    def read(self, line):
        """Return the events of one line, most often none; an event is a dict with the key "event"."""
        text = TAG.sub("", line)
        train = TRAIN.search(text)
        if train:
            self.step = int(train.group(1))
            return [{"event": "train", "step": self.step, "loss": _number(train.group(2))}] + self._time(text)
        return self._time(text) or self._evaluation(text) or self._deaths(text) or _ends(text)

    def _deaths(self, text):
        """Return what mpirun says of ranks and machines that are gone; rank and exit code stand on two lines."""
        killed = KILLED.search(text)
        if killed:
            rank, node, number = int(killed.group(1)), killed.group(2), int(killed.group(3))
            return [{"event": "rank-died", "rank": rank, "node": node, "signal": number}]
        failed = FAILED_RANK.search(text)
        if failed:
            self.failed_rank = int(failed.group(1))
        code = FAILED_CODE.search(text)
        if code and self.failed_rank is not None:
            return [{"event": "rank-died", "rank": self.failed_rank, "exit_code": int(code.group(1))}]
        lost = LOST.search(text)
        if lost:
            return [{"event": "node-lost", "node": lost.group(1)}]
        return [{"event": "disk-full"}] if FULL.search(text) else []

    def _time(self, text):
        match = STEP_TIME.search(text)
        if not match:
            return []
        seconds = int(match.group(1)) * 3600 + int(match.group(2)) * 60 + float(match.group(3))
        return [{"event": "time", "step": self.step, "seconds_per_step": round(seconds, 3)}]

    def _evaluation(self, text):
        if EVALUATION.search(text):
            return [{"event": "evaluation"}]
        for pattern, name, key in ((VALIDATION, "validation", "loss"), (BLEU, "bleu", "score")):
            match = pattern.search(text)
            if match:
                return [{"event": name, key: _number(match.group(1))}]
        return []


def _ends(text):
    """Return what is said once, at the beginning or at the end of a run."""
    restored = RESTORE.search(text)
    if restored:
        return [{"event": "restored", "step": int(restored.group(1) or restored.group(2))}]
    for pattern, event in ((START, "started"), (FINISHED, "finished"), (NOT_MEASURED, "not_measured")):
        if pattern.search(text):
            return [{"event": event}]
    batches = BATCHES.search(text)
    if batches:
        return [{"event": "batches", "done": int(batches.group(1)), "of": int(batches.group(2))}]
    for pattern, event, kind in (
        (AVERAGE_TIME, "average_seconds_per_step", _number),
        (AVERAGE_OBJECTS, "average_objects_per_second", _number),
        (PARAMETERS, "parameters", int),
        (READ, "read", str),
        (LOADED, "loaded", str),
        (STAND_IN, "stand_in", str),
    ):
        match = pattern.search(text)
        if match:
            return [{"event": event, "value": kind(match.group(1))}]
    return []


def rank_of(line):
    """Return the rank that wrote a line which ``mpirun --tag-output`` has passed on, or None."""
    tag = TAG.match(line)
    return int(tag.group(1)) if tag else None


def _number(text):
    """Return a float, or the text itself for nan and inf, which JSON cannot hold."""
    return text if "n" in text else float(text)
