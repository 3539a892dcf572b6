"""Plays many runs on several worker processes."""

import multiprocessing
import time
import traceback
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Protocol

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


def played(cases: Iterable[tuple[int, Case]], workers: int = WORKERS, limit_s: float = LIMIT_S) -> Iterator[Played]:
    """Play numbered cases, each on a stage of its own, in whatever order they end; none begins after the limit."""
    ends = time.monotonic() + limit_s
    pool = ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"), initializer=_open)
    try:
        for done in as_completed([pool.submit(_play, number, case) for number, case in cases]):
            yield done.result()
            if time.monotonic() > ends:
                return
    finally:
        pool.shutdown(cancel_futures=True)


def _open() -> None:
    global _theatre  # noqa: PLW0603 - a worker process has one theatre, and its pool knows no other place to keep it
    _theatre = Theatre()


def _play(number: int, case: Case) -> Played:
    began = time.monotonic()
    try:
        verdict = case.play(_theatre)
        return Played(number, case, verdict, _theatre.server.wire.struck.is_set(), time.monotonic() - began)
    except Exception:  # noqa: BLE001 - a run that breaks is a run that went wrong, and the others go on
        broken = Verdict(prompts=[traceback.format_exc()])
        return Played(number, case, broken, was_struck=True, seconds=time.monotonic() - began)
