"""Reading the log of OpenSeq2Seq's run.py line by line; Python 3.5 syntax, because this file travels to the launcher."""

import re

TAG = re.compile(r"\[\d+,\d+\]<std(?:out|err)>:\s?")
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
STAND_IN = re.compile(r"\*\*\* (stand-in trainer, not OpenSeq2Seq.*)")


class Reader:
    """Turns lines into events; it remembers the step, because loss and time stand on two lines."""

    def __init__(self):
        self.step = None

    def read(self, line):
        """Return the events of one line, most often none; an event is a dict with the key "event"."""
        text = TAG.sub("", line)
        train = TRAIN.search(text)
        if train:
            self.step = int(train.group(1))
            return [{"event": "train", "step": self.step, "loss": _number(train.group(2))}] + self._time(text)
        return self._time(text) or self._evaluation(text) or _ends(text)

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
    for pattern, event in ((START, "started"), (FINISHED, "finished")):
        if pattern.search(text):
            return [{"event": event}]
    for pattern, event, kind in (
        (AVERAGE_TIME, "average_seconds_per_step", _number),
        (AVERAGE_OBJECTS, "average_objects_per_second", _number),
        (PARAMETERS, "parameters", int),
        (STAND_IN, "stand_in", str),
    ):
        match = pattern.search(text)
        if match:
            return [{"event": event, "value": kind(match.group(1))}]
    return []


def _number(text):
    """Return a float, or the text itself for nan and inf, which JSON cannot hold."""
    return text if "n" in text else float(text)
