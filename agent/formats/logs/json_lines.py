"""Progress as JSON lines: ``{"step": 10, "loss": 2.3}``, printed by one rank.

``loss`` makes a training step, ``validation_loss`` an evaluation, and a line with neither a step where it is a new one; every other
number of the line is a metric of its name. Beside a step that begins anew in each epoch stands ``epoch``: then the steps count on.
Seconds per step follow from the time between two lines.
"""

import json
import re
import time
from typing import Any, Callable, Dict

from agent.formats.logs.ranks import Events, RankReader, metric, number
from agent.run.document import LONGEST_METRIC

EVERY_S = 1.0
"""A progress bar is drawn ten times a second, and output that was held back comes as hundreds of lines at once, whose times are no pace."""
MOST_OBJECTS = 20
"""Of a line, in which the output of several ranks may stand."""
UNREAD = "progress-unread"
LARGEST, MOST_SHAPES, SHOWN = 1e18, 4, 100  # Of a step; of unread lines: how many kinds are said, and how long.

DECODER = json.JSONDecoder(parse_int=float)  # An integer of 321 digits is no float, and a number of its text is.


class Counter:
    """The step that a program has come to; it counts on where an epoch begins anew, and never goes back.

    ``shown`` and ``of_epoch`` are those of the newest line, ``epoch`` may be said by a heading before it; ``base`` was counted before the
    epoch, which began with ``first``; ``gap`` is between two lines; ``last`` is any line's; ``anew`` counts how often one fell far behind.
    """

    def __init__(self) -> None:
        self.step, self.shown, self.epoch, self.of_epoch = None, None, float("-inf"), float("-inf")
        self.base, self.gap, self.first, self.last, self.anew = 0, 1, 0, 0, 0

    def counted(self, values: Dict[str, float], earlier: Events) -> Dict[str, Any]:
        """Return the values of a line with the step as it is counted; nothing where the line's own cannot be one.

        ``earlier`` are the events of the run's earlier attempts, which say what was counted before this one's first epoch.
        """
        shown, epoch = values.get("step"), values.get("epoch", self.epoch)
        if not values or not (shown is None or 0 <= shown < LARGEST):
            return {}
        self.epoch = max(self.epoch, epoch)
        if shown is not None and epoch == self.epoch:
            self._count(int(shown), earlier)
        return dict(values, step=self.step)

    def _count(self, shown: int, earlier: Events) -> None:
        if self.shown is None:
            # What an earlier attempt has written may be anything that its program wanted.
            known = [(one.get("value"), one.get("step")) for one in earlier if one.get("name") == "epoch"]
            before = max([0] + [at for one, at in known if type(one) is float and one < self.epoch and type(at) is int])
            self.base, self.gap, self.first = before if shown <= before else 0, max(shown, 1), shown
        elif self.of_epoch != self.epoch and (shown < self.shown or shown <= self.first):
            self.base, self.first = self.step + self.gap - shown, shown
        elif shown > self.shown:
            self.gap, self.anew = shown - self.shown, 0
        else:  # Another rank's line is a line or two behind; a bar of an evaluation goes back once until the next step.
            self.anew += self.last - shown > 3 * self.gap
            self.last = shown
            return
        self.shown, self.last, self.of_epoch, self.step = shown, shown, self.epoch, self.base + shown


class Reader(RankReader):
    """Remembers when the pace was measured last, and the newest values of a line that is drawn again."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self.clock, self.paced = clock, None
        self.newest, self.redrawn_at = {}, None
        self.counter, self.shapes, self.alarms = Counter(), set(), []

    def events_in(self, text: str) -> Events:
        self.alarms = []
        values = self.counter.counted(self.values_in(text.rstrip("\r")), self.earlier)
        if self.counter.anew == 2:
            self.unread(
                str(self.counter.shown),
                "the step begins anew again and again, here after {}: have the number `epoch` read too",
            )
        if text.endswith("\r"):
            return self._redrawn(values) + self.alarms
        values, self.newest = values or self.newest, {}
        return self.progress(values) + super().events_in(text) + self.alarms

    def _redrawn(self, values: Dict[str, Any]) -> Events:
        """Return the events of a line that will be drawn again; another rank's has no values."""
        now = self.clock()
        self.newest = values or self.newest
        if not values or (self.redrawn_at is not None and now - self.redrawn_at < EVERY_S):
            return []
        self.newest, self.redrawn_at = {}, now
        return self.progress(values)

    def values_in(self, text: str) -> Dict[str, float]:
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
            values = dict((key, value) for key, value in found.items() if type(value) is float)
            if "step" in values:
                return values
        if re.search(r"""["'](?:step|loss)["']\s*:""", text):
            self.unread(text)
        return {}

    def unread(self, text: str, sentence: str = "what is meant as progress could not be read: {}") -> None:
        """Say of what could not be read that it was not, once for texts that differ in their digits alone."""
        shape = re.sub(r"\d+", "", text[:SHOWN])
        if shape not in self.shapes and len(self.shapes) < MOST_SHAPES:
            self.shapes.add(shape)
            self.alarms.append({"event": "alarm", "cause": UNREAD, "text": sentence.format(text[:SHOWN])})

    def progress(self, values: Dict[str, Any]) -> Events:
        """Return the events of one line's values; before the first step only an evaluation has one."""
        step, events = values.pop("step", None), []
        if step is None:
            return [
                {"event": "validation", "loss": number(values[name])} for name in values if name == "validation_loss"
            ]
        loss = number(values.pop("loss")) if "loss" in values else None
        is_new = "validation_loss" not in values and (self.step is None or step > self.step)
        if loss is not None or is_new:
            events += [self.trained(step, loss)] + self._pace(step)
        if "validation_loss" in values:
            events.append({"event": "validation", "step": step, "loss": number(values.pop("validation_loss"))})
        for name in sorted(values):
            if len(name) <= LONGEST_METRIC and name.isprintable():
                events.append(metric(name, step, number(values[name])))
        return events

    def _pace(self, step: int) -> Events:
        """Return the mean seconds of the steps since it was measured last, once there are enough of both."""
        now = self.clock()
        at, last = self.paced = self.paced or (now, step)
        if step == last or now - at < EVERY_S:
            return []
        self.paced = now, step
        return [{"event": "time", "step": step, "seconds_per_step": round((now - at) / (step - last), 3)}]
