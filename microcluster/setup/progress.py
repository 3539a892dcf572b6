"""The progress on the screen: each stage and step, with the time so far and the usual time."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

from microcluster.core.plain_text import duration, say

REPEAT_S = 10
"""Seconds between two progress lines."""
QUICK_S = 2
"""Faster steps print no line."""


def moment(text: str) -> str:
    """Return an ISO time in UTC for people; a text that is no time with an offset stays as it is."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return text
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC" if at.tzinfo else text


@contextmanager
def shown(what: str, usual: str) -> Iterator[None]:
    """Show what the block does while it does it, and how it ended; nothing of what is over quickly."""
    over, began = threading.Event(), time.monotonic()

    def show() -> None:
        if over.wait(QUICK_S):
            return
        say(f"    {what} (usually {usual})")
        while not over.wait(REPEAT_S):
            say(f"    {what}: {duration(time.monotonic() - began)} so far (usually {usual})")

    thread = threading.Thread(target=show, daemon=True)
    thread.start()
    ending = "interrupted"
    try:
        yield
        ending = "done"
    except Exception:
        ending = "failed"
        raise
    finally:
        over.set()
        thread.join()
        took = time.monotonic() - began
        if ending != "done" or took > QUICK_S:
            say(f"    {what}: {ending} after {duration(took)}")


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
