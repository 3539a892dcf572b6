"""Doing the same on many hosts at the same time, and raising once with every failure in it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from microcluster.remote.host import Host, RemoteError
from microcluster.waiting import NotReadyError

T = TypeVar("T")
LIMIT_S = 7200.0
"""Longer than any step's own limits together; what is not over by then has failed."""


def on_all(
    hosts: Sequence[Host], act: Callable[[Host], T], *, late: T | None = None, timeout_s: float = LIMIT_S
) -> list[T]:
    """Return what ``act`` returned for each host, in their order.

    Args:
        late: the answer of a host that did not end within ``timeout_s``, which otherwise is a failure; its thread dies
            with the process.

    Raises:
        RemoteError: when it failed for at least one host, after all have ended.
        KeyboardInterrupt: at once when a person presses Ctrl-C, with the hosts on which it may still go on.
    """
    answers: dict[int, T] = {}
    failures: dict[int, Exception] = {}

    def run(number: int, host: Host) -> None:
        try:
            answers[number] = act(host)
        except Exception as error:  # noqa: BLE001 - the caller gets it, from its own thread
            failures[number] = error

    threads = [threading.Thread(target=run, args=pair, daemon=True) for pair in enumerate(hosts)]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + timeout_s
    try:
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))
    except KeyboardInterrupt as pressed:
        # Not by asking the threads: a join that was interrupted calls its thread ended.
        names = ", ".join(str(host) for number, host in enumerate(hosts) if number not in answers | failures)
        raise KeyboardInterrupt(f"what was begun on {names} may still go on" if names else "") from pressed
    for number, host in enumerate(hosts):
        if number not in answers and number not in failures and late is None:
            failures[number] = RemoteError(f"working on {host}: not over after {timeout_s:.0f} s. Try again.")
    for error in failures.values():
        if not isinstance(error, (RemoteError, NotReadyError)):
            raise error
    if failures:
        raise RemoteError("\n".join(str(failures[number]) for number in sorted(failures)))
    return [answers.get(number, late) for number in range(len(hosts))]  # type: ignore[misc]
