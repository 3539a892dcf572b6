"""Locks of a stack: one make or recover at a time, and one pulumi, whose lock stays when it is killed."""

import json
import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn

from microcluster.core.files import locked
from microcluster.core.home import Home
from microcluster.lifecycle.pulumi_state import PROJECT_NAME
from microcluster.setup.environment import PROJECT
from microcluster.setup.errors import CommandFailed
from microcluster.setup.progress import moment

UNKNOWN = 0
"""The pid in a lock that cannot be read."""
ENDING = ("make down", "fab recover")
DEAD, STOPPED = ("Z", "X"), "T"
"""States of ended processes in /proc, and of one that Ctrl-Z has stopped."""


class Busy(CommandFailed):
    """Another command is at work, here and now."""


@dataclass(frozen=True)
class PulumiLock:
    """The lock file of a running or killed ``pulumi``."""

    pid: int
    user: str
    host: str
    since: str

    @property
    def is_stale(self) -> bool:
        """Whether its pulumi is dead; a lock of another computer counts as living."""
        return self.host == socket.gethostname() and not _is_pulumi(self.pid)


@contextmanager
def alone_on(stack: str, command: str, home: Home) -> Iterator[None]:
    """Hold the stack's lock for ``command``.

    Raises:
        Busy: another command holds it.
        CommandFailed: so does one that Ctrl-Z has stopped.
    """

    def refuse(holder: str) -> NoReturn:
        raise (CommandFailed if _is_stopped(holder) else Busy)(_busy(stack, command, holder))

    with locked(_path(stack, home), refuse) as file:
        holder = {
            "pid": os.getpid(),
            "command": command,
            "folder": str(PROJECT),
            "since": f"{datetime.now(UTC):%H:%M:%S} UTC",
        }
        file.write(json.dumps(holder))
        file.flush()
        yield


def is_busy(stack: str, home: Home) -> bool:
    """Return whether a command holds the stack's lock and is at work; one that Ctrl-Z has stopped is not."""
    try:
        with alone_on(stack, "looking", home):
            return False
    except Busy:
        return True
    except (CommandFailed, OSError):
        return False


def held_s(stack: str, home: Home) -> float:
    """Return for how long the stack's lock has had its holder, who writes its name into it."""
    return time.time() - _path(stack, home).stat().st_mtime


def interrupt_holder(stack: str, home: Home) -> None:
    """Let the command that holds the stack's lock end, as Ctrl-C does; one that takes the stack down goes on, and a full disk is no obstacle."""

    def interrupt(holder: str) -> NoReturn:
        of = json.loads(holder)
        if of["command"] not in ENDING:
            os.kill(of["pid"], signal.SIGINT)
            # One that Ctrl-Z has stopped would hold the lock for ever.
            os.killpg(os.getpgid(of["pid"]), signal.SIGCONT)
        raise ProcessLookupError

    with suppress(OSError, ValueError, KeyError), locked(_path(stack, home), interrupt):
        pass


def _path(stack: str, home: Home) -> Path:
    """Return the lock under a stack's label: commands under its old and its new name exclude each other."""
    return home.locks / f"{home.label_of(stack)}.lock"


def _busy(stack: str, command: str, holder: str) -> str:
    try:
        of = json.loads(holder)
        sentence = f"process {of['pid']} is doing `{of['command']}` on it in {of['folder']} since {of['since']}"
        way_out = f"Wait for it, or stop it with `kill -INT {of['pid']}`"
    except (ValueError, KeyError):
        sentence, way_out = "another command works on it", "Wait for it"
    return f"{command}: stack {stack} is busy: {sentence}. {way_out}, then repeat."


def pulumi_locks(stack: str, home: Home) -> tuple[PulumiLock, ...]:
    """Return the locks on a stack in the file backend."""
    folder = home.state / ".pulumi" / "locks" / "organization" / PROJECT_NAME / stack
    return tuple(lock for path in sorted(folder.glob("*.json")) if (lock := _read(path)))


def stale_lock(stack: str, home: Home) -> PulumiLock | None:
    """Return the lock of a ``pulumi`` that was killed, or None."""
    return next((lock for lock in pulumi_locks(stack, home) if lock.is_stale), None)


def refuse_living_pulumi(stack: str, command: str, home: Home) -> None:
    """Raise while a ``pulumi`` works on the stack."""
    living = next((lock for lock in pulumi_locks(stack, home) if not lock.is_stale), None)
    if living is None:
        return
    way_out = f"Wait for it, or stop it with `kill -INT {living.pid}`, then repeat"
    is_here = living.host == socket.gethostname()
    if not is_here:
        way_out = f"Wait for it; only if it does not run there: `pulumi cancel --yes {stack}`, then repeat"
    raise (Busy if is_here and _state(living.pid) != STOPPED else CommandFailed)(
        f"{command}: stack {stack} is busy: a pulumi (process {living.pid} of {living.user} on {living.host}) works on it "
        f"since {living.since}. {way_out}."
    )


def refuse_unreadable_lock(stack: str, home: Home) -> None:
    """Raise if a lock of the stack names no process: nothing proves that its pulumi is dead."""
    if any(lock.pid == UNKNOWN for lock in pulumi_locks(stack, home)):
        raise CommandFailed(
            f"Stack {stack} is locked, and its lock was cut off in the middle, so that nobody can tell whether a pulumi "
            f"works on it. If none does: `fab recover --stack {stack}` (after `. ./env.sh`) releases it."
        )


def _read(path: Path) -> PulumiLock | None:
    """Return a lock, or None if its pulumi has ended meanwhile."""
    try:
        entry = json.loads(path.read_bytes())
        since = moment(str(entry["timestamp"]))  # Pulumi writes it with the offset of its computer.
        return PulumiLock(int(entry["pid"]), str(entry["username"]), str(entry["hostname"]), since)
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError):
        # Most likely cut off by a crash.
        return PulumiLock(UNKNOWN, "unknown", socket.gethostname(), "an unknown time")


def _is_pulumi(pid: int) -> bool:
    return "pulumi" in _stat(pid)[0] and _state(pid) not in DEAD


def _is_stopped(holder: str) -> bool:
    try:
        return _state(json.loads(holder)["pid"]) == STOPPED
    except (ValueError, KeyError, TypeError):
        return False


def _state(pid: int) -> str:
    """Return the state of a process as /proc has it; that of an ended one, where there is none."""
    return _stat(pid)[1] or DEAD[0]


def _stat(pid: int) -> tuple[str, str]:
    """Return a process's name and state."""
    try:
        name, _, rest = Path(f"/proc/{pid}/stat").read_text().partition("(")[2].rpartition(")")
    except OSError:
        return "", ""
    return name, rest.split()[0]
