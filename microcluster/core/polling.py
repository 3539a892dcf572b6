"""The one wait of microcluster: it has a limit, ends early on failure, reports progress, and raises."""

import time
from collections.abc import Callable
from typing import TypeVar

from microcluster.core.plain_text import duration, note

T = TypeVar("T")
SAY_EVERY_S = 5.0


class NotReadyError(Exception):
    """The time limit of a wait is over."""


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
    """Return the first true answer of ``probe``, which raises when waiting longer is useless.

    Raises:
        NotReadyError: after ``timeout_s``.
    """
    start = reported = clock()
    usual = f", usually {duration(usual_s)}" if usual_s else ""
    while True:
        answer = probe()
        if answer:
            return answer
        now = clock()
        if now - start >= timeout_s:
            raise NotReadyError(f"waiting for {what}: not there after {duration(now - start)}{usual}.")
        if now - reported >= SAY_EVERY_S:
            note(f"waiting for {what}: {duration(now - start)} so far{usual}")
            reported = now
        sleep(every_s)
