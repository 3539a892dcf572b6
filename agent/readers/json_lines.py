"""Progress as JSON lines: ``{"step": 10, "loss": 2.3}``, printed by one rank.

``loss`` makes a training step, ``validation_loss`` an evaluation, and a line with neither a step where it is a new one; every other
number of the line is a metric of its name.
Seconds per step follow from the time between two lines.
"""

import json
import math
import time

from agent.readers.ranks import RankReader, number

LONGEST_CHARACTERS = 10000


class Reader(RankReader):
    """Remembers when the last training step was read."""

    def __init__(self, options=None, clock=time.monotonic):
        super().__init__(options)
        self.clock, self.read_at = clock, None

    def events_in(self, text):
        return self.progress(self.values_in(text)) + super().events_in(text)

    def values_in(self, text):
        """Return the values of a line by name, or nothing where the line is none of ours."""
        begin = text.find('{"')
        if begin < 0 or len(text) > LONGEST_CHARACTERS:
            return {}
        try:
            found, _ = json.JSONDecoder().raw_decode(text[begin:])
        except (ValueError, RecursionError):
            return {}
        return dict((key, value) for key, value in found.items() if type(value) in (int, float))

    def progress(self, values):
        """Return the events of one line's values; without a step there are none."""
        step = values.pop("step", None)
        if step is None or not math.isfinite(step) or step < 0:
            return []
        step, events = int(step), []
        if "loss" in values:
            pace = self._pace(step)
            events += [self.trained(step, number(values.pop("loss")))] + pace
        elif "validation_loss" not in values and (self.step is None or step > self.step):
            pace = self._pace(step)
            events += [self.trained(step)] + pace
        if "validation_loss" in values:
            events.append({"event": "validation", "step": step, "loss": number(values.pop("validation_loss"))})
        for name in sorted(values):
            events.append({"event": "metric", "name": name, "step": step, "value": number(values[name])})
        return events

    def _pace(self, step):
        """Return the mean seconds of the steps since the last line, once there is one."""
        now, before, last = self.clock(), self.read_at, self.step
        self.read_at = now
        if before is None or last is None or step <= last:
            return []
        return [{"event": "time", "step": step, "seconds_per_step": round((now - before) / (step - last), 3)}]
