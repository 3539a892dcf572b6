"""Plays many runs on several worker processes and adds up what went wrong."""

from __future__ import annotations

import multiprocessing
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from typing import Any

from chaos.stage import Stage, Theatre

WORKERS = 6
"""More than cores: a run mostly waits for the account's clock."""

_theatre: Theatre | None = None


@dataclass
class Played:
    """What became of one run."""

    case: Any
    wrong: list[str] = field(default_factory=list)
    struck: bool = True
    seconds: float = 0.0


def played(play: Callable[[Stage, Any], list[str]], cases: Iterable[Any], workers: int = WORKERS) -> Iterator[Played]:
    """Play all cases, each on a stage of its own, in whatever order they end."""
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=spawn, initializer=_open) as pool:
        for done in as_completed([pool.submit(_play, play, case) for case in cases]):
            yield done.result()


def _open() -> None:
    global _theatre  # noqa: PLW0603 - a worker process has one theatre, and its pool knows no other place to keep it
    _theatre = Theatre()


def _play(play: Callable[[Stage, Any], list[str]], case: Any) -> Played:
    began = time.monotonic()
    try:
        with _theatre.stage() as stage:
            wrong = play(stage, case)
            return Played(case, wrong, stage.wire.struck.is_set(), time.monotonic() - began)
    except Exception:  # noqa: BLE001 - a run that breaks is a run that went wrong, and the others go on
        return Played(case, [traceback.format_exc()], True, time.monotonic() - began)
