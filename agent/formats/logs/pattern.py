"""Progress by a regular expression with named groups: ``step`` and ``loss``, ``validation_loss`` or any metric's name."""

import re
import signal
from typing import Any, Callable, Dict

from agent.formats.logs import json_lines

PART, OVERLAP = 10000, 1000
"""Characters of a line that are searched at once: a search may take the square of them."""
LONGEST_S, MOST_SLOW = 1.0, 3
"""Limit of processor time for one line, and of lines that exceed it; then the expression is given up."""
# What is written 1,000; a pattern may look for its digits alone, and another for columns with commas between them.
THOUSANDS = re.compile("(?<![0-9.,_])[1-9][0-9]{0,2}(?:[,_\u00a0\u202f][0-9]{3})+(?![,_]?[0-9])")
# A number as programs print it: 'tensor(0.5, device='cuda:0')', '12%'; no date, no time of day, no 3/10.
NUMERAL = re.compile(
    r"""[\s'"=:]*(?:[a-z][\w.]*\(\s*)?([-+]?(?:nan|inf(?:inity)?|\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?)(?![\w.]|[-,:/]\d)""",
    re.I,
)


class Reader(json_lines.Reader):
    """Reads lines that hold ``pattern``."""

    def __init__(self, pattern: str, **clock: Callable[[], float]) -> None:
        super().__init__(**clock)
        self.pattern, self.slow = re.compile(pattern), 0

    def values_in(self, text: str) -> Dict[str, float]:
        """Return what all matches hold, of each name the last value. Without a step they belong to the last one seen.

        What a program prints may follow its progress bar on one line: the step is in one match then, and the loss in another.
        """
        if self.slow >= MOST_SLOW:
            return {}
        plain = THOUSANDS.sub(lambda found: re.sub(r"\D", "", found.group()), text)
        try:
            return self._found(plain) or (self._found(text) if plain != text else {})
        except TimeoutError:
            self.slow += 1
            if self.slow == MOST_SLOW:
                self.unread(
                    "",
                    "job.progress, the regular expression, takes more than a second for a line of the output; progress is not read any more",
                )
            return {}

    def _found(self, text: str) -> Dict[str, float]:
        # A search asks for signals now and then, and this one counts the processor's time only.
        signal.signal(signal.SIGVTALRM, _too_slow)
        signal.setitimer(signal.ITIMER_VIRTUAL, LONGEST_S)
        try:
            found = {}
            for begin in range(0, max(len(text) - OVERLAP, 1), PART - OVERLAP):
                for match in self.pattern.finditer(text[begin : begin + PART]):
                    numbers = [
                        (name, NUMERAL.match(part)) for name, part in match.groupdict().items() if part is not None
                    ]
                    found.update((name, float(numeral.group(1))) for name, numeral in numbers if numeral)
                    if None in dict(numbers).values():
                        self.unread(match.group())
            return found
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def _too_slow(number: int, frame: Any) -> None:
    raise TimeoutError("a search has taken too long")
