"""Real processes known by a descriptor, and a server that forks them: an import costs a second, a fork ten milliseconds."""

import array
import contextlib
import importlib
import json
import os
import random
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
LONGEST_REQUEST = 65536
PROVIDER = "providers.softlayer.__main__"


class Process:
    """A process known by a descriptor, so that a number that was given to somebody else is never signalled."""

    def __init__(self, pid: int, pidfd: int, stdin: int, stdout: int) -> None:
        self.pid = pid
        self._pidfd: int | None = pidfd
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


class ForkServer:
    """The fork server as its user sees it."""

    def __init__(self, module: str = PROVIDER) -> None:
        """Import ``module``, whose ``main`` takes the arguments of each start."""
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tools.chaos.fork_server", str(theirs.fileno()), module],
            cwd=ROOT,
            pass_fds=[theirs.fileno()],
        )
        theirs.close()

    def fork(self, arguments: Sequence[str], environment: Mapping[str, str], log: Path) -> Process:
        """Start the program with a process group, a standard input and a standard output of its own, as the engine does."""
        stdin, stdout = os.pipe(), os.pipe()
        request = json.dumps({"arguments": list(arguments), "environment": dict(environment), "log": str(log)})
        handed = array.array("i", [stdin[0], stdout[1]])
        self._socket.sendmsg([request.encode()], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, handed)])
        os.close(stdin[0])
        os.close(stdout[1])
        answer, fds, _, _ = socket.recv_fds(self._socket, LONGEST_REQUEST, 1)
        return Process(int(answer), fds[0], stdin[1], stdout[0])

    def close(self) -> None:
        """End the fork server; its processes see their parent go."""
        self._socket.close()
        self._server.wait(10)


def serve(channel: socket.socket, module: str) -> None:
    """Fork a process for each request until the user is gone."""
    # Everything is imported once; nothing of gRPC's is made here, for its threads would not survive a fork.
    main = importlib.import_module(module).main
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        ready, _, _ = select.select([channel], [], [], 1.0)
        _reap()
        if not ready:
            continue
        request, fds, _, _ = socket.recv_fds(channel, LONGEST_REQUEST, 2)
        if not request:
            return
        pid = os.fork()
        if pid == 0:
            channel.close()
            _become(main, json.loads(request), *fds)
        # The child cannot be reaped before this thread says so, so that its number is still its own.
        pidfd = os.pidfd_open(pid)
        socket.send_fds(channel, [str(pid).encode()], [pidfd])
        for fd in (*fds, pidfd):
            os.close(fd)


def _become(main: Any, request: Mapping[str, Any], stdin: int, stdout: int) -> None:
    try:
        os.setsid()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        log = os.open(request["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        for fd, place in ((stdin, 0), (stdout, 1), (log, 2)):
            os.dup2(fd, place)
        os.closerange(3, 256)
        os.environ.update(request["environment"])
        random.seed()
        code = main(request["arguments"])
    except BaseException:  # noqa: BLE001 - a child must never go on with the parent's loop
        sys.excepthook(*sys.exc_info())
        code = 1
    os._exit(code)


def _reap() -> None:
    while True:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                return
        except ChildProcessError:
            return


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])), sys.argv[2])
