"""Ctrl-C as a person presses it: to all that the terminal has in front, at a moment that shows on the screen or in a machine."""

import os
import shlex
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from product import Product
from traces import processes

END_LIMIT_S = 120
PLUGINS_LIMIT_S = 20
AS_IN_A_TERMINAL = "env --default-signal=INT"
"""A shell in the background lets its children ignore Ctrl-C; a terminal does not."""
OURS = ("/fab", "pulumi", "setup up")
"""Programs that a command starts on this computer and may not leave behind; the emulated account lives on by itself."""


@dataclass(frozen=True)
class Interrupted:
    """Result of a command after its Ctrl-C: its exit code, all its output, and its processes that still live."""

    code: int
    said: str
    left: tuple[str, ...]


def interrupt(product: Product, command: str, moment: Callable[[str], object]) -> Interrupted:
    """Run a command in a session of its own and press Ctrl-C once ``moment`` holds of what it has said so far."""
    with product.begun(f"{AS_IN_A_TERMINAL} bash -c {shlex.quote(command)}") as running:
        product.wait_while(running, "the moment of the Ctrl-C", lambda: moment(product.said()), every_s=0.1)
        os.killpg(running.pid, signal.SIGINT)
        code = running.wait(END_LIMIT_S)
    return Interrupted(code, product.said(), tuple(left_after(product)))


def left_after(product: Product) -> list[str]:
    """Return what is left when Pulumi's plugins have had their time to notice that it is gone."""
    deadline = time.monotonic() + PLUGINS_LIMIT_S
    while (left := list(left_of(product))) and time.monotonic() < deadline:
        time.sleep(0.5)
    return left


def left_of(product: Product) -> Iterator[str]:
    """Yield what lives on this computer that belongs to a command of the product."""
    home = f"MICROCLUSTER_HOME={product.home}".encode()
    for one in processes():
        if home in one.environment and any(word in one.words for word in OURS):
            yield one.words
