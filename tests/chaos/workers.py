"""Plays many runs on several worker processes."""

import tempfile
import time
import traceback
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Protocol

from tests.chaos.accounts import AccountServer
from tests.chaos.checker import Verdict
from tests.chaos.command_line import CommandLineStage, Copy
from tests.chaos.fork_server import CONTEXT
from tests.chaos.market import Market
from tests.chaos.stage import EngineStage, Stage

WORKERS = 12
"""More than cores: a run mostly waits for the account's clock."""
LIMIT_S = 58 * 60.0


class Theatre:
    """Equipment of one worker process for all its runs: the account's ports, and a copy of the project."""

    def __init__(self) -> None:
        self.server = AccountServer()
        self._folder = tempfile.TemporaryDirectory(prefix="microcluster-chaos-")

    @contextmanager
    def stage(self, market: Market | None, **settings: Any) -> Iterator[Stage]:
        """Open an account and a home for one run: under the model of the engine, or, without a market, of the command line."""
        wire = self.server.wire
        with tempfile.TemporaryDirectory(prefix="microcluster-chaos-", ignore_cleanup_errors=True) as name:
            folder = Path(name)
            if market is None:
                with self._copy.home(self.server, folder / "home", **settings) as rented:
                    yield CommandLineStage(wire, rented, self._copy)
            else:
                with self.server.opened(folder / "account", market, **settings) as rented:
                    yield EngineStage(wire, rented, folder)

    @cached_property
    def _copy(self) -> Copy:
        return Copy(Path(self._folder.name))


class Case(Protocol):
    """One run: a sentence by ``str``, and what is done."""

    def play(self, theatre: Theatre) -> Verdict: ...


@dataclass(frozen=True)
class Played:
    """Result of one run."""

    number: int
    case: Case
    verdict: Verdict
    was_struck: bool


@contextmanager
def workers(count: int = WORKERS) -> Iterator[ProcessPoolExecutor]:
    """Start worker processes; what has not begun when the block ends never does."""
    pool = ProcessPoolExecutor(count, mp_context=CONTEXT)
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def played(pool: ProcessPoolExecutor, cases: Iterable[tuple[int, Case]]) -> Iterator[Played]:
    """Play numbered cases, each on a stage of its own, in whatever order they end; none begins after the limit."""
    ends = time.monotonic() + LIMIT_S
    for done in as_completed([pool.submit(_play, number, case) for number, case in cases]):
        yield done.result()
        if time.monotonic() > ends:
            return


@cache
def theatre() -> Theatre:
    """Return the theatre of this worker process."""
    return Theatre()


def _play(number: int, case: Case) -> Played:
    place = theatre()
    try:
        return Played(number, case, case.play(place), place.server.wire.is_struck)
    except Exception:  # noqa: BLE001 - a run that breaks is a run that went wrong, and the others go on
        return Played(number, case, Verdict(prompts=[traceback.format_exc()]), was_struck=True)
