"""Pulumi's own lines without those that only tell that time goes by."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field

REPEAT_S = 30
"""How often a resource that waits may say the same thing with other numbers."""
DOTS = re.compile(r"@ \w+\.+")
UNCHANGED = re.compile(r"(~  )?\w+:\w+:\w+ [\w-]+( refresh(ing)? \(\S+s\))?")
"""A resource that was looked at and is as it was; the last lines count these."""
SECONDS = re.compile(r"\d+(?= ?s\b)")
COLOURS = re.compile(r"\x1b\[[0-9;]*m")


@dataclass
class Quiet:
    """Decides line by line what a person gets to see."""

    now: Callable[[], float] = time.monotonic
    _said: dict[str, float] = field(default_factory=dict)

    def shows(self, line: str) -> bool:
        """Whether ``line`` says something that the lines so far did not say."""
        plain = COLOURS.sub("", line).strip()
        if DOTS.fullmatch(plain) or UNCHANGED.fullmatch(plain):
            return False
        if "so far" not in plain:
            return True
        kind = SECONDS.sub("", plain)
        if self.now() - self._said.get(kind, -REPEAT_S) < REPEAT_S:
            return False
        self._said[kind] = self.now()
        return True
