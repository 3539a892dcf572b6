"""Doing the same on many hosts at the same time, and raising once with every failure in it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from remote.host import Host, RemoteError
from remote.waiting import NotReadyError

T = TypeVar("T")
NO_LIMIT_S = 7200.0


def on_all(
    hosts: Sequence[Host], act: Callable[[Host], T], *, late: T | None = None, timeout_s: float = NO_LIMIT_S
) -> list[T]:
    """Return what ``act`` returned for each host, in their order.

    Args:
        late: the answer of a host that did not end within ``timeout_s``; its thread dies with the process.

    Raises:
        RemoteError: when it failed for at least one host, after all have ended.
    """
    answers: dict[int, T] = {}
    failures: dict[int, Exception] = {}

    def run(number: int, host: Host) -> None:
        try:
            answers[number] = act(host)
        except (RemoteError, NotReadyError) as error:
            failures[number] = error

    threads = [threading.Thread(target=run, args=pair, daemon=True) for pair in enumerate(hosts)]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + timeout_s
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    if failures:
        raise RemoteError("\n".join(str(failures[number]) for number in sorted(failures)))
    return [answers.get(number, late) for number in range(len(hosts))]  # type: ignore[misc]
