"""Real processes known by a descriptor, forked by Python's fork server: an import costs a second, a fork ten milliseconds."""

import contextlib
import importlib
import multiprocessing
import os
import select
import signal
import sys
import threading
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path

PROVIDER = "microcluster.accounts.softlayer.__main__"
IMPORTED_ONCE = [
    PROVIDER,
    "microcluster.accounts.paperspace.__main__",
    "emulator.cli",
    "tests.chaos.cases",
    "tests.chaos.guard",
]
"""Nothing of gRPC's may be made by an import, for its threads would not survive a fork."""
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(IMPORTED_ONCE)


class Process:
    """A process known by a descriptor, so that a number that was given to somebody else is never signalled."""

    def __init__(self, pid: int, stdin: int, stdout: int) -> None:
        self.pid = pid
        self._pidfd: int | None = os.pidfd_open(pid)
        self._stdin: int | None = stdin
        self._stdout = os.fdopen(stdout)
        self._lock = threading.Lock()

    def first_line(self, limit_s: float = 60) -> str:
        """Read the line in which the provider says its port."""
        if not select.select([self._stdout], [], [], limit_s)[0]:
            raise TimeoutError(f"the provider (process {self.pid}) did not say its port within {limit_s:g} s")
        return self._stdout.readline()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal; a process that is gone gets none."""
        with self._lock, contextlib.suppress(ProcessLookupError):
            if self._pidfd is not None:
                signal.pidfd_send_signal(self._pidfd, number)

    def close_stdin(self) -> None:
        """Let go of the pipe that the engine holds as long as it lives."""
        if self._stdin is not None:
            os.close(self._stdin)
            self._stdin = None

    def ended(self, limit_s: float = 0.0) -> bool:
        """Wait for the end, at most this long, and tell whether it came."""
        pidfd = self._pidfd
        return pidfd is None or bool(select.select([pidfd], [], [], limit_s)[0])

    def release(self) -> None:
        """Forget the process and its pipes."""
        self.close_stdin()
        self._stdout.close()
        with self._lock:
            os.close(self._pidfd)
            self._pidfd = None


def fork(module: str, arguments: Sequence[str], environment: Mapping[str, str], log: Path) -> Process:
    """Start a module's ``main`` with a process group, a standard input and a standard output of its own, as the engine does."""
    stdin, held = CONTEXT.Pipe(duplex=False)
    heard, stdout = CONTEXT.Pipe(duplex=False)
    given = (module, list(arguments), {**environment}, (stdin, stdout), log)
    child = CONTEXT.Process(target=_become, args=given, daemon=True)
    child.start()
    return Process(child.pid, os.dup(held.fileno()), os.dup(heard.fileno()))


def _become(
    module: str, arguments: list[str], environment: dict[str, str], pipes: tuple[Connection, Connection], log: Path
) -> None:
    os.setsid()
    errors = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for place, fd in enumerate((pipes[0].fileno(), pipes[1].fileno(), errors)):
        os.dup2(fd, place)
    os.environ.update(environment)
    sys.exit(importlib.import_module(module).main(arguments))
