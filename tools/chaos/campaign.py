"""Plays many runs on several worker processes."""

import multiprocessing
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from tools.chaos.checker import Verdict
from tools.chaos.stage import Theatre

WORKERS = 12
"""More than cores: a run mostly waits for the account's clock."""
LIMIT_S = 58 * 60.0

_theatre: Theatre | None = None


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
    seconds: float


@contextmanager
def workers(count: int = WORKERS) -> Iterator[ProcessPoolExecutor]:
    """Start worker processes, each with a theatre of its own; what has not begun when the block ends never does."""
    pool = ProcessPoolExecutor(count, mp_context=multiprocessing.get_context("spawn"), initializer=_open)
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def submit(pool: ProcessPoolExecutor, task: Callable[[Theatre], Any]) -> Future:
    """Let a worker do a task with its theatre."""
    return pool.submit(_with_theatre, task)


def played(pool: ProcessPoolExecutor, cases: Iterable[tuple[int, Case]], limit_s: float = LIMIT_S) -> Iterator[Played]:
    """Play numbered cases, each on a stage of its own, in whatever order they end; none begins after the limit."""
    ends = time.monotonic() + limit_s
    for done in as_completed([pool.submit(_play, number, case) for number, case in cases]):
        yield done.result()
        if time.monotonic() > ends:
            return


def _open() -> None:
    global _theatre  # noqa: PLW0603 - a worker process has one theatre, and its pool knows no other place to keep it
    _theatre = Theatre()


def _with_theatre(task: Callable[[Theatre], Any]) -> Any:
    return task(_theatre)


def _play(number: int, case: Case) -> Played:
    began = time.monotonic()
    try:
        verdict = case.play(_theatre)
        return Played(number, case, verdict, _theatre.server.wire.struck.is_set(), time.monotonic() - began)
    except Exception:  # noqa: BLE001 - a run that breaks is a run that went wrong, and the others go on
        broken = Verdict(prompts=[traceback.format_exc()])
        return Played(number, case, broken, was_struck=True, seconds=time.monotonic() - began)
