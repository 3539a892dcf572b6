"""Progress by a regular expression with named groups: ``step`` and ``loss``, ``validation_loss`` or any metric's name."""

import re

from agent.readers import json_lines


class Reader(json_lines.Reader):
    """Reads lines that hold ``options["pattern"]``."""

    def __init__(self, options, **clock):
        super().__init__(options, **clock)
        self.pattern = re.compile(options["pattern"])

    def values_in(self, text):
        match = self.pattern.search(text[: json_lines.LONGEST_CHARACTERS])
        return dict(pair for pair in map(_number, match.groupdict().items()) if pair) if match else {}


def _number(item):
    """Return (name, number) of a group, or None where the text is no number."""
    try:
        return item[0], float(item[1])
    except (TypeError, ValueError):
        return None
