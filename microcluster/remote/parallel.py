"""Runs a function on many hosts in parallel, and raises once with all failures."""

import threading
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from microcluster.core.polling import NotReadyError
from microcluster.remote.errors import RemoteError
from microcluster.remote.host import Host

T = TypeVar("T")
LIMIT_S = 7200.0
"""Time limit of a step on all hosts, longer than all limits within any step."""


def on_all(
    hosts: Sequence[Host], act: Callable[[Host], T], *, late: T | None = None, timeout_s: float = LIMIT_S
) -> list[T]:
    """Return the results of ``act`` in the order of ``hosts``.

    Args:
        late: the result for a host that is not done after ``timeout_s``; without it that is a failure.

    Raises:
        RemoteError: it failed on at least one host, after all have ended.
        KeyboardInterrupt: at a Ctrl-C, with the hosts on which it may still run.
    """
    answers: dict[int, T] = {}
    failures: dict[int, Exception] = {}

    def run(number: int, host: Host) -> None:
        try:
            answers[number] = act(host)
        except Exception as error:  # noqa: BLE001 - raised below
            failures[number] = error

    threads = [threading.Thread(target=run, args=pair, daemon=True) for pair in enumerate(hosts)]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + timeout_s
    try:
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))
    except KeyboardInterrupt as pressed:
        # `is_alive` is wrong after an interrupted join.
        names = ", ".join(str(host) for number, host in enumerate(hosts) if number not in answers | failures)
        raise KeyboardInterrupt(f"the command may still run on {names}" if names else "") from pressed
    for number, host in enumerate(hosts):
        if number not in answers and number not in failures and late is None:
            failures[number] = RemoteError(f"working on {host}: not over after {timeout_s:.0f} s. Try again.")
    for error in failures.values():
        if not isinstance(error, (RemoteError, NotReadyError)):
            raise error
    if len(failures) == 1:
        raise next(iter(failures.values()))
    if failures:
        told = "\n".join(str(failures[number]) for number in sorted(failures))
        raise RemoteError(f"{told}\nRun the same command again; `fab status` says how the machines are.")
    return [answers.get(number, late) for number in range(len(hosts))]  # type: ignore[misc]
