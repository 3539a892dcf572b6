"""The lines that a staging prints for the log, and its refusals."""

import sys
import time

MARK = "staging: "
"""How a line begins that `fab watch` shows as what is being done."""
SAY_EVERY_S = 10


class Refused(Exception):
    """The data cannot be used; the argument is a full sentence with the next step."""


def say(text):
    sys.stdout.write(MARK + text + "\n")
    sys.stdout.flush()


class Progress:
    """Tells every few seconds how far a piece of work is, and at its end how long it took."""

    def __init__(self, what, total, unit, scale=1, clock=time.monotonic):
        self.what, self.total, self.unit, self.scale, self.clock = what, total, unit, scale, clock
        self.began = self.printed_at = clock()
        say(what + " ...")

    def at(self, done):
        if self.clock() - self.printed_at >= SAY_EVERY_S:
            self.printed_at = self.clock()
            say(self.what + ": " + self._amount(done) + ", " + self._age() + " so far")

    def over(self, done):
        self.total = None
        say(self.what + ": " + self._amount(done) + " in " + self._age())

    def _amount(self, done):
        parts = [str(done // self.scale)] + (["of", str(self.total // self.scale)] if self.total else [])
        return " ".join(parts + [self.unit])

    def _age(self):
        return str(int(self.clock() - self.began)) + " s"
