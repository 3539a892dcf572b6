"""The one wait: it has a limit, ends early when the thing has died, says how long it takes, and raises."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TypeVar

from microcluster import plain_text

T = TypeVar("T")
SAY_EVERY_S = 5.0


class NotReadyError(Exception):
    """What was waited for did not come within its limit."""


def say(text: str) -> None:
    """Tell the person what goes on; standard output belongs to the result."""
    plain_text.say(text, sys.stderr)


def wait_until(  # noqa: PLR0913 - the clock is injected by tests
    what: str,
    probe: Callable[[], T | None],
    *,
    timeout_s: float,
    usual_s: float | None = None,
    every_s: float = 1.0,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> T:
    """Return the first answer of ``probe`` that is true; an empty text or list is none.

    ``probe`` raises when waiting on is hopeless.

    Raises:
        NotReadyError: after ``timeout_s``.
    """
    start = said = clock()
    usual = f", usually {usual_s:.0f} s" if usual_s else ""
    while True:
        answer = probe()
        if answer:
            return answer
        now = clock()
        if now - start >= timeout_s:
            raise NotReadyError(f"waiting for {what}: not there after {now - start:.0f} s{usual}.")
        if now - said >= SAY_EVERY_S:
            say(f"waiting for {what}: {now - start:.0f} s so far{usual}")
            said = now
        sleep(every_s)
