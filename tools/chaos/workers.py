"""Plays many runs on several worker processes."""

import multiprocessing
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from tools.chaos.accounts import AccountServer
from tools.chaos.checker import Verdict
from tools.chaos.command_line import CommandLineStage, Copy
from tools.chaos.fork_server import ForkServer
from tools.chaos.market import Market
from tools.chaos.stage import EngineStage, Stage

WORKERS = 12
"""More than cores: a run mostly waits for the account's clock."""
LIMIT_S = 58 * 60.0


class Theatre:
    """What one worker process keeps for all its runs: fork servers, the account's ports, a copy of the project."""

    def __init__(self) -> None:
        self.server = AccountServer()
        self._fork_servers: dict[str, ForkServer] = {}
        self._copy: tuple[tempfile.TemporaryDirectory, Copy] | None = None

    def fork_server(self, module: str) -> ForkServer:
        """Return the fork server of a program, started when it is first asked for."""
        if module not in self._fork_servers:
            self._fork_servers[module] = ForkServer(module)
        return self._fork_servers[module]

    @contextmanager
    def stage(self, market: Market | None, **settings: Any) -> Iterator[Stage]:
        """Open an account and a home for one run: under the model of the engine, or, without a market, of the command line."""
        wire = self.server.wire
        with tempfile.TemporaryDirectory(prefix="microcluster-chaos-", ignore_cleanup_errors=True) as name:
            folder = Path(name)
            if market is None:
                with self._project().home(self.server, folder / "home", **settings) as line:
                    yield CommandLineStage(wire, line)
            else:
                with self.server.opened(folder / "account", market, **settings) as rented:
                    yield EngineStage(wire, rented, folder, self.fork_server(market.provider))

    def _project(self) -> Copy:
        if self._copy is None:
            folder = tempfile.TemporaryDirectory(prefix="microcluster-chaos-")
            self._copy = folder, Copy(Path(folder.name))
        return self._copy[1]


class Case(Protocol):
    """One run: a sentence by ``str``, and what is done."""

    def play(self, theatre: Theatre) -> Verdict: ...


@dataclass(frozen=True)
class Played:
    """What became of one run."""

    number: int
    case: Case
    verdict: Verdict
    was_struck: bool


@contextmanager
def workers(count: int = WORKERS) -> Iterator[ProcessPoolExecutor]:
    """Start worker processes; what has not begun when the block ends never does."""
    pool = ProcessPoolExecutor(count, mp_context=multiprocessing.get_context("spawn"))
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def submit(pool: ProcessPoolExecutor, task: Callable[..., Any], *arguments: Any) -> Future:
    """Let a worker do a task with its theatre."""
    return pool.submit(_with_theatre, task, *arguments)


def played(pool: ProcessPoolExecutor, cases: Iterable[tuple[int, Case]], limit_s: float = LIMIT_S) -> Iterator[Played]:
    """Play numbered cases, each on a stage of its own, in whatever order they end; none begins after the limit."""
    ends = time.monotonic() + limit_s
    for done in as_completed([submit(pool, _play, number, case) for number, case in cases]):
        yield done.result()
        if time.monotonic() > ends:
            return


@cache
def _theatre() -> Theatre:
    """Return the theatre of this worker process."""
    return Theatre()


def _with_theatre(task: Callable[..., Any], *arguments: Any) -> Any:
    return task(_theatre(), *arguments)


def _play(theatre: Theatre, number: int, case: Case) -> Played:
    try:
        return Played(number, case, case.play(theatre), theatre.server.wire.struck.is_set())
    except Exception:  # noqa: BLE001 - a run that breaks is a run that went wrong, and the others go on
        return Played(number, case, Verdict(prompts=[traceback.format_exc()]), was_struck=True)
