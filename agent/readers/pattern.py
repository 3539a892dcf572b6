"""Progress by a regular expression with named groups: ``step`` and ``loss``, ``validation_loss`` or any metric's name."""

import re
import signal

from agent.readers import json_lines

PART, OVERLAP = 10000, 1000
"""Characters of a line that are searched at once: a search may take the square of them."""
LONGEST_S, MOST_SLOW = 1.0, 3
"""Of the processor, for one line; and how many lines may take longer until the expression is given up."""
UNREAD = "progress-unread"
GIVEN_UP = "job.progress, the regular expression, takes more than a second for a line of the output; progress is not read any more"


class TooSlow(Exception):
    """A search has taken too long."""


class Reader(json_lines.Reader):
    """Reads lines that hold ``pattern``."""

    def __init__(self, pattern, **clock):
        super().__init__(**clock)
        self.pattern, self.slow = re.compile(pattern), 0

    def events_in(self, text):
        before = self.slow
        events = super().events_in(text)
        if before < self.slow == MOST_SLOW:
            events.append({"event": "alarm", "cause": UNREAD, "text": GIVEN_UP})
        return events

    def values_in(self, text):
        """Return what all matches hold, of each name the last value. Without a step they belong to the last one seen.

        What a program prints may follow its progress bar on one line: the step is in one match then, and the loss in another.
        """
        if self.slow >= MOST_SLOW:
            return {}
        try:
            values = self._found(text)
        except TooSlow:
            self.slow += 1
            return {}
        if values and "step" not in values:
            values["step"] = self.newest.get("step", self.step)
        return values

    def _found(self, text):
        # A search asks for signals now and then, and this one counts the processor's time only.
        signal.signal(signal.SIGVTALRM, _too_slow)
        signal.setitimer(signal.ITIMER_VIRTUAL, LONGEST_S)
        try:
            found = {}
            for begin in range(0, max(len(text) - OVERLAP, 1), PART - OVERLAP):
                for match in self.pattern.finditer(text[begin : begin + PART]):
                    found.update(filter(None, map(_number, match.groupdict().items())))
            return found
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def _too_slow(number, frame):
    raise TooSlow()


def _number(item):
    """Return (name, number) of a group, or None where the text is no number."""
    try:
        return item[0], float(item[1])
    except (TypeError, ValueError):
        return None
