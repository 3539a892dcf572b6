"""Progress as JSON lines: ``{"step": 10, "loss": 2.3}``, printed by one rank.

``loss`` makes a training step, ``validation_loss`` an evaluation, and a line with neither a step where it is a new one; every other
number of the line is a metric of its name.
Seconds per step follow from the time between two lines.
"""

import json
import math
import time

from agent.readers.ranks import RankReader, metric, number
from agent.spec import LONGEST_METRIC

REDRAWN_EVERY_S = 1.0
"""A progress bar is drawn ten times a second; values that are no numbers are taken at once."""
MOST_OBJECTS = 20
"""Of a line, in which the output of several ranks may stand."""

DECODER = json.JSONDecoder()


class Reader(RankReader):
    """Remembers when the last training step was read, and the newest values of a line that is drawn again."""

    def __init__(self, clock=time.monotonic):
        super().__init__()
        self.clock, self.read_at = clock, None
        self.newest, self.redrawn_at = {}, None

    def events_in(self, text):
        values = self.values_in(text.rstrip("\r"))
        if text.endswith("\r"):
            return self._redrawn(values)
        values, self.newest = values or self.newest, {}
        return self.progress(values) + super().events_in(text)

    def _redrawn(self, values):
        """Return the events of a line that will be drawn again; another rank's has no values."""
        now = self.clock()
        self.newest = values or self.newest
        if not values or (
            self.redrawn_at is not None
            and now - self.redrawn_at < REDRAWN_EVERY_S
            and all(map(math.isfinite, values.values()))
        ):
            return []
        self.newest, self.redrawn_at = {}, now
        return self.progress(values)

    def values_in(self, text):
        """Return the values of a line by name, or nothing where the line is none of ours."""
        begin = -1
        for _ in range(MOST_OBJECTS):
            begin = text.find('{"', begin + 1)
            if begin < 0:
                break
            try:
                found, _ = DECODER.raw_decode(text, begin)
            except (ValueError, RecursionError):
                continue
            values = dict((key, value) for key, value in found.items() if type(value) in (int, float))
            if "step" in values:
                return values
        return {}

    def progress(self, values):
        """Return the events of one line's values; without a step there are none."""
        step = values.pop("step", None)
        if step is None or not math.isfinite(step) or step < 0:
            return []
        step, events = int(step), []
        loss = number(values.pop("loss")) if "loss" in values else None
        is_new = "validation_loss" not in values and (self.step is None or step > self.step)
        if loss is not None or is_new:
            pace = self._pace(step)
            events += [self.trained(step, loss)] + pace
        if "validation_loss" in values:
            events.append({"event": "validation", "step": step, "loss": number(values.pop("validation_loss"))})
        for name in sorted(values):
            if len(name) <= LONGEST_METRIC and name.isprintable():
                events.append(metric(name, step, number(values[name])))
        return events

    def _pace(self, step):
        """Return the mean seconds of the steps since the last line, once there is one."""
        now, before, last = self.clock(), self.read_at, self.step
        if step == last and before is not None:
            return []
        self.read_at = now
        if before is None or last is None or step <= last:
            return []
        return [{"event": "time", "step": step, "seconds_per_step": round((now - before) / (step - last), 3)}]
