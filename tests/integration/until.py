"""Waiting for what the emulated account's clock brings about."""

import time
from collections.abc import Callable

LIMIT_S = 30


def until(probe: Callable[[], object], limit_s: float = LIMIT_S) -> None:
    """Look until it is so."""
    ends = time.monotonic() + limit_s
    while not probe():
        assert time.monotonic() < ends, "it did not happen in time"
        time.sleep(0.05)
