"""One provider process: signals that cannot hit another process, its end, its pipes."""

import contextlib
import os
import select
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence


class Process:
    """A process known by a descriptor, so that a number that was given to somebody else is never signalled."""

    def __init__(
        self, pid: int, pidfd: int, stdin: int, stdout: int, child: subprocess.Popen[bytes] | None = None
    ) -> None:
        self.pid = pid
        self._child = child
        self._pidfd: int | None = pidfd
        self._stdin: int | None = stdin
        self._stdout = os.fdopen(stdout)
        self._lock = threading.Lock()

    @classmethod
    def start(cls, argv: Sequence[str], environment: Mapping[str, str]) -> "Process":
        """Start a program as the engine does: with a process group of its own, and pipes at both ends."""
        stdin, stdout = os.pipe(), os.pipe()
        child = subprocess.Popen(argv, stdin=stdin[0], stdout=stdout[1], env=environment, start_new_session=True)
        os.close(stdin[0])
        os.close(stdout[1])
        return cls(child.pid, os.pidfd_open(child.pid), stdin[1], stdout[0], child)

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

    def exit_code(self, limit_s: float = 60) -> int:
        """Wait for the end of a process that was started here, and return its exit code."""
        return self._child.wait(limit_s)

    def release(self) -> None:
        """Forget the process and its pipes."""
        if self._child:
            self._child.poll()  # An ended child stays a zombie until somebody asks.
        self.close_stdin()
        self._stdout.close()
        with self._lock:
            os.close(self._pidfd)
            self._pidfd = None
