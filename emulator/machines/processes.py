"""Processes that outlive the emulator; a file with their id and start time finds them again."""

import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from emulator.machines.host_tools import find
from emulator.machines.machine_mount import write_private
from emulator.machines.waiting import wait_until

END_S = 5


class KeptProcess:
    """A program with its pid file."""

    def __init__(self, pid_file: Path, log: Path) -> None:
        self._pid_file, self._log = pid_file, log

    @property
    def runs(self) -> bool:
        """Whether the process that the file names is alive and is the one that we started."""
        return self._pid() is not None

    def start(self, argv: Sequence[str]) -> None:
        """Start the program in a session of its own; its output goes to the log."""
        with self._log.open("ab") as log:
            process = subprocess.Popen(
                (find(argv[0]), *argv[1:]),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        write_private(self._pid_file, f"{process.pid} {_started(process.pid)}\n")

    def stop(self) -> None:
        """End the process and forget it; one that has ended already is no error."""
        if (pid := self._pid()) is not None:
            os.kill(pid, signal.SIGKILL)  # A registry has nothing to finish: uploads are renamed into place.
            wait_until(f"the end of process {pid}", lambda: not self.runs, END_S)
        self._pid_file.unlink(missing_ok=True)

    def last_log_line(self) -> str:
        """The last line of the program's log."""
        lines = self._log.read_text(errors="replace").strip().splitlines() if self._log.exists() else []
        return lines[-1] if lines else "its log is empty"

    def _pid(self) -> int | None:
        try:
            pid, started = self._pid_file.read_text().split()
        except (FileNotFoundError, ValueError):
            return None
        _reap(int(pid))
        return int(pid) if _started(int(pid)) == started else None


def _started(pid: int) -> str | None:
    """When a process started, in the kernel's ticks; None for one that is gone or only waits to be reaped."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # Only a zombie without threads has let go of its sockets: the first thread of a program may end before the others.
    return None if fields[0] == "Z" and int(fields[17]) <= 1 else fields[19]


def _reap(pid: int) -> None:
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:  # Started by another process than this one.
        return
