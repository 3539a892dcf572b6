"""Everything that one seed plays: the same seed gives the same cases in the same order."""

from __future__ import annotations

from random import Random

from chaos import kill
from chaos.campaign import Case
from chaos.stage import Theatre

WHOLE = 0


def cases(seed: int, size: int = WHOLE) -> list[tuple[int, Case]]:
    """List the numbered cases of a seed; with a size, a sample of about so many that still meets everything once."""
    killed = [case for verb, calls in _counted().items() for case in kill.cases(verb, calls, seed)]
    numbers = {case: number for number, case in enumerate(killed)}
    chosen = kill.sample(killed, seed, size) if size else Random(seed).sample(killed, len(killed))
    return [(numbers[case], case) for case in chosen]


def _counted() -> dict:
    theatre = Theatre()
    try:
        with theatre.stage() as stage:
            return kill.count_calls(stage)
    finally:
        theatre.close()
