"""The progress on the screen: one line for each stage and step, with time so far and usual time."""

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TextIO

from core.plain_text import duration, one_line, say

REPEAT_S = 30
"""Between two progress lines where the output is no terminal."""
QUICK_S = 2
"""Faster steps print no line."""
POLL_S = 0.5
DONE = "done"


def moment(text: str) -> str:
    """Return an ISO time in UTC for people; a text that is no time with an offset stays as it is."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return text
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC" if at.tzinfo else text


@dataclass
class Ticker:
    """The progress line of one step: redrawn on a terminal, repeated now and then elsewhere."""

    what: str
    usual: str
    out: TextIO = field(default_factory=lambda: sys.stdout)
    now: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._start = self._printed = self.now()
        self._drawn = 0
        self._begun = False

    @property
    def elapsed(self) -> str:
        return duration(self.now() - self._start)

    def tick(self) -> None:
        """Show the time so far; called about once a second."""
        if self.now() - self._start < QUICK_S:
            return
        if self.out.isatty():
            self._draw(f"    {self.what}: {self.elapsed} (usually {self.usual})")
        elif not self._begun:
            say(f"    {self.what} (usually {self.usual})", self.out)
        elif self.now() - self._printed >= REPEAT_S:
            self._printed = self.now()
            say(f"    {self.what}: {self.elapsed} so far (usually {self.usual})", self.out)
        self._begun = True

    def end(self, how: str) -> None:
        """Print the final line with the total time."""
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


@contextmanager
def ticking(what: str, usual: str) -> Iterator[Ticker]:
    """Show the time so far while the block runs, and how it ended."""
    ticker, over = Ticker(what, usual), threading.Event()

    def repeat() -> None:
        while not over.wait(POLL_S):
            ticker.tick()

    thread = threading.Thread(target=repeat, daemon=True)
    thread.start()
    how = "interrupted"
    try:
        yield ticker
        how = DONE
    except Exception:
        how = "failed"
        raise
    finally:
        over.set()
        thread.join()
        ticker.end(how)


def _columns(out: TextIO) -> int:
    try:
        return os.get_terminal_size(out.fileno()).columns or 80
    except (OSError, ValueError):
        return 80


@dataclass
class Stages:
    """The stages of one command, with their seconds."""

    taken: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str, what: str) -> Iterator[None]:
        """Announce one stage and time it."""
        say(f"==> {name}: {what}")
        start = time.monotonic()
        try:
            yield
        finally:
            self.taken[name] = time.monotonic() - start

    def summary(self) -> str:
        return ", ".join(f"{name} {duration(seconds)}" for name, seconds in self.taken.items())
