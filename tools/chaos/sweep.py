"""Everything that one seed plays: the same seed gives the same cases under the same numbers."""

from collections.abc import Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from random import Random

from tools.chaos import cli, faults, kill, loss, paperspace, queue, second
from tools.chaos.campaign import WORKERS, Case, submit
from tools.chaos.engine import Verb


@dataclass(frozen=True)
class Size:
    """How many cases of each sweep are drawn; of the kills at least as many as it takes to strike everything once."""

    kills: int
    losses: int
    faulty: int
    command_lines: int
    seconds: int
    of_paperspace: int
    queued: int


SAMPLE = Size(kills=110, losses=16, faulty=40, command_lines=5, seconds=80, of_paperspace=16, queued=8)
FAULT_CASES = 500
LIST = 100_000
COUNTS = 2 * WORKERS
MANY = dict.fromkeys(Verb, 200)
"""More calls than any command makes, to find a case by its number without counting."""


@dataclass(frozen=True)
class Sweep:
    """The cases of a seed, by number."""

    seed: int
    kills: dict[int, kill.Case]
    losses: dict[int, loss.Case]
    faulty: dict[int, faults.Case]
    command_lines: dict[int, cli.Case]
    seconds: dict[int, second.Case]
    """The second account's."""
    of_paperspace: dict[int, paperspace.Case]
    """Paperspace's."""
    queued: dict[int, queue.Case]

    def whole(self) -> dict[int, Case]:
        """All cases; the slow ones come first, so that no worker is left alone with one at the end."""
        chance = Random(self.seed)
        quick = {**self.kills, **self.losses, **self.faulty, **self.seconds, **self.of_paperspace, **self.queued}
        return {**self.command_lines, **{number: quick[number] for number in chance.sample(list(quick), len(quick))}}

    def sample(self, size: Size = SAMPLE) -> dict[int, Case]:
        """Some of the cases, drawn by the seed."""
        chance = Random(self.seed)
        numbers = {case: number for number, case in self.kills.items()}
        drawn: dict[int, Case] = {}
        for cases, count in (
            (self.command_lines, size.command_lines),
            (self.losses, size.losses),
            (self.faulty, size.faulty),
            (self.seconds, size.seconds),
            (self.of_paperspace, size.of_paperspace),
            (self.queued, size.queued),
        ):
            drawn |= {number: cases[number] for number in chance.sample(list(cases), count)}
        return drawn | {numbers[case]: case for case in kill.sample(list(self.kills.values()), self.seed, size.kills)}


def counted(seed: int, pool: ProcessPoolExecutor) -> Sweep:
    """Count the calls of clean commands, and lay the cases out.

    A wait asks more or less often: of many counts the fewest, and with all workers busy, as in the campaign.
    """
    of_cli = submit(pool, cli.count_calls)
    counts = [count.result() for count in [submit(pool, kill.count_calls) for _ in range(COUNTS)]]
    return laid_out(seed, {verb: min(each[verb] for each in counts) for verb in Verb}, of_cli.result())


def laid_out(seed: int, calls: Mapping[Verb, int] = MANY, calls_of_cli: Mapping[Verb, int] = MANY) -> Sweep:
    """Lay the cases out; a case keeps its number however many calls there are, as each list has its own hundred thousand."""
    return Sweep(
        seed,
        *(
            _numbered(place, [module.cases(verb, count, seed) for verb, count in counts.items()])
            for place, (module, counts) in enumerate(((kill, calls), (loss, calls)))
        ),
        _numbered(2, [faults.cases(seed, FAULT_CASES)]),
        _numbered(3, [cli.cases(verb, count, seed) for verb, count in calls_of_cli.items()]),
        _numbered(4, [second.cases(seed)]),
        _numbered(5, [paperspace.cases(seed)]),
        _numbered(6, [queue.cases(seed)]),
    )


def _numbered(place: int, lists: Iterable[Iterable[Case]]) -> dict[int, Case]:
    return {
        place * LIST + part * LIST // 2 + number: case
        for part, cases in enumerate(lists)
        for number, case in enumerate(cases)
    }
