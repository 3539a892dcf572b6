"""Everything that one seed plays: the same seed gives the same cases under the same numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from chaos import cli, kill, loss, weather
from chaos.campaign import Case
from chaos.stage import Theatre


@dataclass(frozen=True)
class Size:
    """How many cases of each sweep are drawn; of the kills at least as many as it takes to strike everything once."""

    kills: int
    losses: int
    weathers: int
    command_lines: int


SAMPLE = Size(kills=110, losses=16, weathers=40, command_lines=5)
WEATHERS = 500


@dataclass(frozen=True)
class Sweep:
    """The cases of a seed, by number."""

    seed: int
    kills: dict[int, kill.Case]
    losses: dict[int, loss.Case]
    weathers: dict[int, weather.Case]
    command_lines: dict[int, cli.Case]

    def whole(self) -> dict[int, Case]:
        """All cases; the slow ones come first, so that no worker is left alone with one at the end."""
        chance = Random(self.seed)
        quick = {**self.kills, **self.losses, **self.weathers}
        return {**self.command_lines, **{number: quick[number] for number in chance.sample(list(quick), len(quick))}}

    def sample(self, size: Size = SAMPLE) -> dict[int, Case]:
        """Some of the cases, drawn by the seed."""
        chance = Random(self.seed)
        numbers = {case: number for number, case in self.kills.items()}
        drawn: dict[int, Case] = {}
        for cases, count in (
            (self.command_lines, size.command_lines),
            (self.losses, size.losses),
            (self.weathers, size.weathers),
        ):
            drawn |= {number: cases[number] for number in chance.sample(list(cases), count)}
        return drawn | {numbers[case]: case for case in kill.sample(list(self.kills.values()), self.seed, size.kills)}


def sweep(seed: int) -> Sweep:
    """Count the calls of clean commands, and lay the cases out."""
    theatre = Theatre()
    try:
        calls, calls_of_cli = kill.count_calls(theatre), cli.count_calls(theatre)
    finally:
        theatre.close()
    kills = [case for verb, count in calls.items() for case in kill.cases(verb, count, seed)]
    losses = [case for verb, count in calls.items() for case in loss.cases(verb, count, seed)]
    lines = [case for verb, count in calls_of_cli.items() for case in cli.cases(verb, count, seed)]
    return Sweep(seed, *_numbered(kills, losses, list(weather.cases(seed, WEATHERS)), lines))


def _numbered(*lists: Sequence[Case]) -> list[dict[int, Case]]:
    found, first = [], 0
    for cases in lists:
        found.append(dict(enumerate(cases, first)))
        first += len(cases)
    return found
