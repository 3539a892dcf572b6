"""Waiting for what the emulated account's clock brings about."""

import time
from collections.abc import Callable
from typing import Any

LIMIT_S = 30


def until(probe: Callable[[], Any], limit_s: float = LIMIT_S) -> Any:
    """Look until something is there, and return it."""
    ends = time.monotonic() + limit_s
    while not (found := probe()):
        assert time.monotonic() < ends, "it did not happen in time"
        time.sleep(0.02)
    return found
