"""Processes that outlive a killed ``pulumi``: provider, language host, program and steps over ssh."""

import os
import signal
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from microcluster.accounts.registry import ACCOUNTS
from microcluster.core.home import Home
from microcluster.core.polling import NotReadyError, wait_until
from microcluster.setup.environment import BACKEND, child_environment

ENGINE = "pulumi"
HOSTS = ("pulumi-language-python", "pulumi-language-python-exec", "pulumi-resource-command")
PROVIDERS = {f"microcluster.accounts.{name}": f"{name} provider" for name in ACCOUNTS}
TERM_S = 8.0
"""The provider saves its journal within four seconds."""
KILL_S = 10.0


@dataclass(frozen=True)
class Process:
    """A process of this user; ``started`` distinguishes it from a later one with the same pid."""

    pid: int
    parent: int
    started: str
    name: str
    argv: tuple[str, ...]
    backend: str | None

    def __str__(self) -> str:
        """The process in a sentence, for example "fab step.start-job (process 77)"."""
        return f"{_part(self.argv) or self.name} (process {self.pid})"


def find(stack: str, home: Home) -> tuple[Process, ...]:
    """Return the processes that a dead engine left behind on ``stack``."""
    return orphans(_ours(), stack, child_environment(home)[BACKEND])


def orphans(processes: Iterable[Process], stack: str, backend: str) -> tuple[Process, ...]:
    """Return processes of an engine that have no living engine above them."""
    by_pid = {process.pid: process for process in processes}
    parts = [each for each in by_pid.values() if each.backend == backend and _part(each.argv)]
    others = {_engine_address(each.argv) for each in parts if _stack_of(each.argv) not in (None, stack)}
    return tuple(
        each
        for each in parts
        if not _has_engine(each, by_pid) and (_engine_address(each.argv) or "none") not in (others - {None})
    )


def end(found: Sequence[Process]) -> tuple[Process, ...]:
    """Terminate processes, then kill the rest; return the killed ones.

    Raises:
        NotReadyError: one of them still runs.
    """
    for process in found:
        _send(process, signal.SIGTERM)
    with suppress(NotReadyError):
        _wait_for_end(found, TERM_S)
    stubborn = tuple(process for process in found if _lives(process))
    for process in stubborn:
        _send(process, signal.SIGKILL)
    if stubborn:
        _wait_for_end(stubborn, KILL_S)
    return stubborn


def _wait_for_end(found: Sequence[Process], limit_s: float) -> None:
    if not found:
        return
    names = ", ".join(map(str, found))
    wait_until(f"the end of {names}", lambda: not any(map(_lives, found)), timeout_s=limit_s, usual_s=5, every_s=0.2)


def _send(process: Process, kind: signal.Signals) -> None:
    if _lives(process):
        with suppress(ProcessLookupError):
            os.kill(process.pid, kind)


def _lives(process: Process) -> bool:
    now = _read(Path(f"/proc/{process.pid}"))
    return now is not None and now.started == process.started


def _part(argv: tuple[str, ...]) -> str | None:
    """Return the part of the engine that a command line starts; None for any other program."""
    is_python = os.path.basename(argv[0]).startswith("python")
    program = os.path.basename(argv[1] if is_python and len(argv) > 1 else argv[0])
    if program in HOSTS:
        return program
    providers = [PROVIDERS[word] for word in argv[1:4] if is_python and word in PROVIDERS]
    if providers:
        return providers[0]
    steps = [word for word in argv[1:3] if word.startswith("step.")]
    return f"fab {steps[0]}" if program == "fab" and steps else None


def _stack_of(argv: tuple[str, ...]) -> str | None:
    return argv[argv.index("--stack") + 1] if "--stack" in argv[:-1] else None


def _engine_address(argv: tuple[str, ...]) -> str | None:
    """Return the engine's address: the program gets it by ``--engine``, the other parts as the last argument."""
    address = argv[argv.index("--engine") + 1] if "--engine" in argv[:-1] else argv[-1]
    return address if address.startswith("127.0.0.1:") else None


def _has_engine(process: Process, by_pid: Mapping[int, Process]) -> bool:
    visited = set()
    ancestor = by_pid.get(process.parent)
    while ancestor and ancestor.pid not in visited:
        if ancestor.name == ENGINE:
            return True
        visited.add(ancestor.pid)
        ancestor = by_pid.get(ancestor.parent)
    return False


def _ours() -> list[Process]:
    found = (_read(folder) for folder in Path("/proc").iterdir() if folder.name.isdecimal())
    return [process for process in found if process]


def _read(folder: Path) -> Process | None:
    """Read a process; None for another user's, and for one that has ended."""
    try:
        if folder.stat().st_uid != os.getuid():
            return None
        name, _, rest = (folder / "stat").read_text().partition("(")[2].rpartition(")")
        fields = rest.split()
        argv = tuple((folder / "cmdline").read_bytes().decode(errors="replace").rstrip("\0").split("\0"))
        environment = (folder / "environ").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return None
    if fields[0] in ("Z", "X"):
        return None
    backend = next((line.partition("=")[2] for line in environment if line.startswith(f"{BACKEND}=")), None)
    return Process(int(folder.name), int(fields[1]), fields[19], name, argv, backend)
