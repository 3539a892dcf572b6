"""Everything that one seed plays: the same seed gives the same cases in the same order."""

from __future__ import annotations

from random import Random

from chaos import kill, weather
from chaos.campaign import Case
from chaos.stage import Theatre

WHOLE = 0
WEATHERS = 500


def cases(seed: int, size: int = WHOLE) -> dict[int, Case]:
    """List the cases of a seed by number; with a size, a sample of about so many that still strikes everything once."""
    killed = [case for verb, calls in _counted().items() for case in kill.cases(verb, calls, seed)]
    every: list[Case] = [*killed, *weather.cases(seed, WEATHERS)]
    numbers = {case: number for number, case in enumerate(every)}
    chosen = [*kill.sample(killed, seed, size), *every[len(killed) :][: size // 4]] if size else every
    return {numbers[case]: case for case in Random(seed).sample(chosen, len(chosen))}


def _counted() -> dict:
    theatre = Theatre()
    try:
        with theatre.stage() as stage:
            return kill.count_calls(stage)
    finally:
        theatre.close()
