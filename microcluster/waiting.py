"""The one wait of microcluster: it has a limit, ends early when the thing has died, says how long it takes, and raises."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from microcluster.plain_text import duration, note

T = TypeVar("T")
SAY_EVERY_S = 5.0


class NotReadyError(Exception):
    """What was waited for did not come within its limit."""


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
    usual = f", usually {duration(usual_s)}" if usual_s else ""
    while True:
        answer = probe()
        if answer:
            return answer
        now = clock()
        if now - start >= timeout_s:
            raise NotReadyError(f"waiting for {what}: not there after {duration(now - start)}{usual}.")
        if now - said >= SAY_EVERY_S:
            note(f"waiting for {what}: {duration(now - start)} so far{usual}")
            said = now
        sleep(every_s)
