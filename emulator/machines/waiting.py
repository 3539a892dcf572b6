"""The one way in which the emulator waits."""

import threading
import time
from collections.abc import Callable
from typing import TypeVar

from emulator.machines.spec import MachineError

POLL_S = 0.05
T = TypeVar("T")


def wait_until(
    what: str,
    probe: Callable[[], T | None],
    timeout_s: float,
    *,
    look: str = "the emulator's log",
    error: type[Exception] = MachineError,
) -> T:
    """Return the first true answer of ``probe``, which raises when waiting is useless."""
    end = time.monotonic() + timeout_s
    pause = threading.Event()
    while not (answer := probe()):
        if time.monotonic() > end:
            raise error(f"Waiting for {what}: not there after {timeout_s:g} s. Look into {look}.")
        pause.wait(POLL_S)
    return answer
