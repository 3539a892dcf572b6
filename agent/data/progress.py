"""Lines that a staging prints: how far it is, and why it cannot go on."""

import sys
import time
from typing import Iterable, Iterator, Optional, TypeVar

MARK = "staging: "
"""Beginning of a line that `fab watch` shows as what is being done."""
SAY_EVERY_S = 10
T = TypeVar("T")


class Refused(ValueError):
    """The data cannot be used; the argument is a full sentence with the next step."""


def say(text: str) -> None:
    sys.stdout.write(MARK + text + "\n")
    sys.stdout.flush()


class Progress:
    """Tells every few seconds how far a piece of work is, and at its end how long it took."""

    def __init__(self, what: str, total: Optional[int], unit: str, scale: int = 1) -> None:
        self.what, self.total, self.unit, self.scale = what, total, unit, scale
        self.began = self.printed_at = time.monotonic()
        self.done = 0
        say(what + " ...")

    def count(self, items: Iterable[T]) -> Iterator[T]:
        """Yield items as they are, and count them."""
        for self.done, item in enumerate(items, 1):
            self.at(self.done)
            yield item

    def at(self, done: int) -> None:
        if time.monotonic() - self.printed_at >= SAY_EVERY_S:
            self.printed_at = time.monotonic()
            say(self.what + ": " + self._amount(done) + ", " + self._age() + " so far")

    def over(self, done: int) -> None:
        self.total = None
        say(self.what + ": " + self._amount(done) + " in " + self._age())

    def _amount(self, done: int) -> str:
        parts = [str(done // self.scale)] + (["of", str(self.total // self.scale)] if self.total else [])
        return " ".join(parts + [self.unit])

    def _age(self) -> str:
        return str(int(time.monotonic() - self.began)) + " s"
