"""Runs other programs: into a log file with a progress line, on the screen with signals forwarded, or several at once in one view."""

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue
from types import FrameType
from typing import Any

from microcluster.core.plain_text import duration, say
from microcluster.setup.environment import PROJECT
from microcluster.setup.errors import CommandFailed
from microcluster.setup.progress import shown

TAIL_LINES = 15
GRACE_S = 60  # Pulumi gives its providers 30 s to finish; tests remove their machines.
STOPPED_BY_LIMIT, MISSING = 124, 127
"""Exit codes of a program that was not over in time, and of one that is not there."""
STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
QUIETLY = (signal.SIGTERM, signal.SIGKILL)
"""Signals that end a Python of ours. An interrupt would have it print where it was while it still imports."""
ENDING_S = 4 * GRACE_S  # It ends its own programs first, which may take each of three signals.
LOOK_S = 0.5
LINES = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "errors": "replace"}
"""Arguments of `Popen` for a program whose output and errors are read together, as lines of text."""
FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True)
class Step:
    """A program whose output is shown only when it fails."""

    what: str
    usual: str
    argv: Sequence[str]
    log: Path
    next_step: str
    limit_s: float = 1800


def run_logged(step: Step, environment: Mapping[str, str]) -> None:
    """Run ``step`` with its output in its log; raise with the end of the log if it fails."""
    step.log.parent.mkdir(parents=True, exist_ok=True)
    with shown(step.what, step.usual), step.log.open("wb") as log:
        process = start(step.argv, environment, stdout=log, stderr=subprocess.STDOUT)
        code = wait(process, step.limit_s)
        if code:
            raise CommandFailed(_failure(step, code))


def start(argv: Sequence[str], environment: Mapping[str, str], **output: Any) -> subprocess.Popen[Any]:
    """Start a program in a process group of its own."""
    try:
        return subprocess.Popen(
            argv, cwd=PROJECT, env=dict(environment), stdin=subprocess.DEVNULL, process_group=0, **output
        )
    except OSError as missing:
        raise CommandFailed(
            f"running {argv[0]}: {missing.strerror}. Run: make setup, then the same command."
        ) from missing


def wait(process: subprocess.Popen[Any], limit_s: float | None) -> int:
    """Return the exit code of a program; end it with its group at the time limit, and when this process is interrupted."""
    try:
        return process.wait(limit_s)
    except subprocess.TimeoutExpired:
        stop_group(process)
        return STOPPED_BY_LIMIT
    except BaseException:
        stop_group(process)
        raise


def stop_group(
    process: subprocess.Popen[Any], kinds: Sequence[signal.Signals] = STOPPING, grace_s: float = GRACE_S
) -> None:
    """End a program and its process group by each of the signals, then by SIGKILL."""
    for kind in kinds:
        _signal_group(process, kind)
        with suppress(subprocess.TimeoutExpired):
            process.wait(grace_s)
            break
    _signal_group(process, signal.SIGKILL)  # Background processes of a shell ignore SIGINT.


def _signal_group(process: subprocess.Popen[Any], kind: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, kind)


def how_it_ended(code: int, limit_s: float) -> str:
    """Return a failed program's exit code in words."""
    return f"not over after {duration(limit_s)}" if code == STOPPED_BY_LIMIT else f"exit code {code}"


def _failure(step: Step, code: int) -> str:
    return f"{step.what}: {step.argv[0]} failed ({how_it_ended(code, step.limit_s)}). Its last lines:\n{tail(step.log)}\nWhole log: {step.log}. {step.next_step}"


def tail(log: Path) -> str:
    """Return the last lines of a log, indented."""
    lines = log.read_text(errors="replace").rstrip().splitlines() if log.exists() else []
    return "\n".join(f"    | {line}" for line in lines[-TAIL_LINES:]) or "    | (no output)"


def run_in_view(
    argv: Sequence[str],
    environment: Mapping[str, str],
    limit_s: float | None = None,
    lines_of: Callable[[str], Iterable[str]] | None = None,
) -> int:
    """Run a program on this screen and return its exit code; it gets a Ctrl-C exactly once.

    It has its own process group: on a second signal Pulumi would drop the results of running operations.

    Args:
        lines_of: returns the lines to print for each line of the program; without it all are printed.

    Raises:
        KeyboardInterrupt: this process got a signal; the program has ended.
    """
    with _forwarding() as forwarder:
        process = forwarder.to(start(argv, environment, **(LINES if lines_of else {})))
        try:
            for line in process.stdout or ():
                for text in lines_of(line) if lines_of else ():
                    say(text)
        except BaseException:  # For example because the reader of this screen has gone.
            if forwarder.asked:  # Its terminal was closed, and it knows already.
                process.communicate()
            else:
                stop_group(process)
                process.wait()
            raise
        return wait(process, limit_s)


def run_beside(commands: Mapping[str, Sequence[str]], environment: Mapping[str, str], next_step: str) -> None:
    """Run commands of ours at the same time, each line behind the name of what its command prepares; the first that fails ends the others.

    Raises:
        CommandFailed: one has failed, and all have ended.
        KeyboardInterrupt: this process got a signal, and all have ended.
    """
    said: SimpleQueue[tuple[str, str]] = SimpleQueue()
    running: dict[str, subprocess.Popen[Any]] = {}
    with _forwarding() as forwarder:
        try:
            for name, argv in commands.items():
                running[name] = start(argv, environment, **LINES)
                threading.Thread(target=_pass_on, args=(name, running[name], said), daemon=True).start()
            while running and not forwarder.asked:
                with suppress(Empty):
                    name, line = said.get(timeout=LOOK_S)
                    if line:
                        say(f"{name} | {line.rstrip()}")
                    elif code := running.pop(name).wait():
                        stopped = "".join(f"; preparing the {other} was stopped" for other in running)
                        reason = f"Preparing the {name} failed (exit code {code}), for the reason above{stopped}."
                        raise CommandFailed(f"{reason} {next_step}")
        finally:
            for process in running.values():
                stop_group(process, QUIETLY, ENDING_S)


def _pass_on(name: str, process: subprocess.Popen[str], said: "SimpleQueue[tuple[str, str]]") -> None:
    """Put each line of a program into ``said``, and an empty text behind the last."""
    for line in process.stdout or ():
        said.put((name, line))
    said.put((name, ""))


@dataclass
class _Forwarder:
    """Forwards each signal to a program once; signals before its start are kept until then."""

    asked: bool = False
    process: subprocess.Popen[Any] | None = None
    kept: list[int] = field(default_factory=list)

    def to(self, process: subprocess.Popen[Any]) -> subprocess.Popen[Any]:
        self.process = process
        self._forward()
        return process

    def __call__(self, number: int, _: FrameType | None) -> None:
        self.asked = True
        self.kept.append(number)
        self._forward()

    def _forward(self) -> None:
        with suppress(IndexError, ProcessLookupError):
            while self.process:
                self.kept.pop()
                self.process.send_signal(signal.SIGINT)


@contextmanager
def _forwarding() -> Iterator[_Forwarder]:
    forwarder = _Forwarder()
    handlers_before = {number: signal.signal(number, forwarder) for number in FORWARDED}
    try:
        yield forwarder
    finally:
        for number, handler in handlers_before.items():
            signal.signal(number, handler)
    if forwarder.asked:
        raise KeyboardInterrupt


def asked(
    argv: Sequence[str],
    limit_s: float,
    environment: Mapping[str, str] = os.environ,
    text: str = "",
    errors: str = "replace",
) -> subprocess.CompletedProcess[str]:
    """Run a quick program that reads ``text``, without showing it; a missing or a late one has an exit code and a reason too."""
    streams = {"input": text, "capture_output": True, "text": True, "errors": errors}
    try:
        return subprocess.run(argv, cwd=PROJECT, env=environment, check=False, timeout=limit_s, **streams)
    except OSError as missing:
        return subprocess.CompletedProcess(argv, MISSING, "", f"{missing.strerror}")
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(argv, STOPPED_BY_LIMIT, "", f"no answer within {limit_s:g} s")
