"""The progress on the screen: each stage and step, with the time so far and the usual time."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

from core.plain_text import duration, say

REPEAT_S = 10
"""Between two progress lines."""
QUICK_S = 2
"""Faster steps print no line."""


def moment(text: str) -> str:
    """Return an ISO time in UTC for people; a text that is no time with an offset stays as it is."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return text
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC" if at.tzinfo else text


@dataclass
class Doing:
    """What is being done; ``step`` is the part of it that has begun."""

    what: str
    usual: str
    step: str = ""

    def show_until(self, over: threading.Event, began: float) -> None:
        """Print it with its usual time, and now and then the time so far, but nothing of what is over quickly."""
        if over.wait(QUICK_S):
            return
        say(f"    {self.what} (usually {self.usual})")
        while not over.wait(REPEAT_S):
            so_far = duration(time.monotonic() - began)
            say(f"    {self.what}{self.step}: {so_far} so far (usually {self.usual})")


@contextmanager
def shown(what: str, usual: str) -> Iterator[Doing]:
    """Show what the block does while it does it, and how it ended."""
    doing, over, began = Doing(what, usual), threading.Event(), time.monotonic()
    thread = threading.Thread(target=doing.show_until, args=(over, began), daemon=True)
    thread.start()
    how = "interrupted"
    try:
        yield doing
        how = "done"
    except Exception:
        how = "failed"
        raise
    finally:
        over.set()
        thread.join()
        took = time.monotonic() - began
        if how != "done" or took > QUICK_S:
            say(f"    {what}: {how} after {duration(took)}")


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
