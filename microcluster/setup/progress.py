"""What a person sees while set-up works: one line per stage with what, how long so far, and how long it usually takes."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TextIO

from microcluster.plain_text import duration, one_line, say

REPEAT_S = 30
"""How often a long silent step says on a plain output that it lives."""
QUICK_S = 2
"""A step that is done sooner is not worth a line."""


DONE = "done"


def moment(text: str) -> str:
    """A time that a program wrote, as a person reads it, in UTC; what is no time with an offset stays as it is."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return text
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC" if at.tzinfo else text


@dataclass
class Ticker:
    """The line of one silent step: redrawn every second on a terminal, repeated now and then elsewhere."""

    what: str
    usual: str
    out: TextIO = field(default_factory=lambda: sys.stdout)
    now: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._start = self._said = self.now()
        self._drawn = 0
        self._begun = False

    @property
    def elapsed(self) -> str:
        return duration(self.now() - self._start)

    def tick(self) -> None:
        """Show the time so far; to be called about once a second."""
        if self.now() - self._start < QUICK_S:
            return
        if self.out.isatty():
            self._draw(f"    {self.what}: {self.elapsed} (usually {self.usual})")
        elif not self._begun:
            say(f"    {self.what} (usually {self.usual})", self.out)
        elif self.now() - self._said >= REPEAT_S:
            self._said = self.now()
            say(f"    {self.what}: {self.elapsed} so far (usually {self.usual})", self.out)
        self._begun = True

    def end(self, how: str) -> None:
        """Leave the final line: done or failed, and after how long."""
        if how == DONE and not self._begun and self.now() - self._start < QUICK_S:
            return
        line = f"    {self.what}: {how} after {self.elapsed}"
        if self.out.isatty():
            self._draw(line)
            say("", self.out)
        else:
            say(line, self.out)

    def _draw(self, line: str) -> None:
        width = max(20, _columns(self.out) - 1)
        shown = one_line(line)[:width]
        self.out.write("\r" + shown.ljust(min(self._drawn, width)))
        self.out.flush()
        self._drawn = len(shown)


def _columns(out: TextIO) -> int:
    try:
        return os.get_terminal_size(out.fileno()).columns or 80
    except (OSError, ValueError):
        return 80


@dataclass
class Stages:
    """The stages of one command, with the seconds that each took."""

    taken: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str, what: str) -> Iterator[None]:
        """Announce one stage and time it, whether it succeeds or not."""
        say(f"==> {name}: {what}")
        start = time.monotonic()
        try:
            yield
        finally:
            self.taken[name] = time.monotonic() - start

    def summary(self) -> str:
        """One line with the time of each stage."""
        return ", ".join(f"{name} {duration(seconds)}" for name, seconds in self.taken.items())
