"""Everything that one seed plays: the same seed gives the same cases under the same numbers."""

import enum
import shutil
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import count, product
from random import Random
from typing import Any

from tests.chaos import guard, queue_sweep, workers
from tests.chaos.checker import Verdict, billed
from tests.chaos.engine import Outcome, Verb
from tests.chaos.market import Market
from tests.chaos.paperspace import PAPERSPACE
from tests.chaos.softlayer import SOFTLAYER
from tests.chaos.stage import Attack, Blow, Damage, Stage, Target
from tests.chaos.wire import Moment
from tests.chaos.workers import WORKERS, Theatre

TLS_EVERY, BROKEN_SHARE = 5, 0.05
SOFTER = tuple(blow for blow in Blow if blow is not Blow.KILL)
"""Blows other than KILL, after which a provider may still write its state."""
BAD_WORDS = ("Traceback", "This is a bug", "Exception calling application")
LONGEST_STORM = 3
"""Commands while faults are injected, before they end."""
SIZES = {"command line": 5, "queue": 8, "guard": 12, "kill": 110, "loss": 16, "faults": 40, "paperspace": 24}
"""Number of cases of each sweep in a sample, with kills enough to strike everything once. Those that wait longest come first."""
OF_A_SEED = 100_000
MANY = 200
"""More calls than any command makes: a case keeps its number however many there are."""


class Place(enum.StrEnum):
    """Driver of the commands: the model of the engine at one of the vendors, or the command line."""

    SOFTLAYER = "softlayer"
    PAPERSPACE = "paperspace"
    COMMAND_LINE = "command line"

    @property
    def market(self) -> Market | None:
        """The account of the model of the engine."""
        return {Place.SOFTLAYER: SOFTLAYER, Place.PAPERSPACE: PAPERSPACE}.get(self)


Sweeps = Mapping[str, Mapping[int, workers.Case]]


@dataclass(frozen=True)
class Case:
    """One run: a command that is struck, or some commands while faults are injected; then one that has to reach its goal."""

    place: Place
    attack: Attack | None
    then: Verb
    seed: int
    damage: Damage | None = None
    is_journal_lost: bool = False

    @property
    def settings(self) -> dict[str, Any]:
        """In a third of the runs the account's lists lag behind; others are over TLS, which breaks now and then."""
        chance, market = Random(self.seed), self.place.market
        settings: dict[str, Any] = {"seed": self.seed, "list_lag_s": 0.0}
        # Lost states with lists that lag are played in tests/integration/test_provider_two_computers.py: the wait is long.
        if market and not self.damage:
            settings["list_lag_s"] = max(chance.uniform(-2, 1) * market.longest_lag_s, 0.0)
        if self.attack is None:
            settings["tls"] = self.seed % 2 == 1
            settings["faults"] = market.fault_rates(chance, is_tls=settings["tls"])
        elif self.seed % TLS_EVERY == 0:
            settings["tls"] = True
            settings["faults"] = {"broken_tls": BROKEN_SHARE}
        return settings

    def play(self, theatre: Theatre) -> Verdict:
        """Strike or inject faults, recover, reach the goal, and judge; after an ``up`` a second one must find nothing to do."""
        chance = Random(self.seed)
        with theatre.stage(self.place.market, **self.settings) as stage:
            orders = self._strike(stage, self.attack, chance) if self.attack else _storm(stage, chance)
            stage.recover()
            if self.then is Verb.UP:
                # What a struck destroy has removed may still be in the state, and only a refresh looks: as `make up` and recover do.
                is_needed = not self.attack or self.attack.verb is Verb.DESTROY or self.damage is not None
                stage.succeeds(Verb.UP, refresh=is_needed or chance.random() < 0.5)
                stage.succeeds(Verb.UP, is_settled=True)
                stage.judge(stage.names, orders)
            stage.succeeds(Verb.DESTROY)
            stage.judge(frozenset(), orders)
            return stage.verdict

    def _strike(self, stage: Stage, attack: Attack, chance: Random) -> int | None:
        """Run a command and strike it, disturb what lies on the disk; return how often a machine may be ordered in all."""
        if attack.verb is Verb.DESTROY:
            stage.succeeds(Verb.UP)
        stage.strike(attack, chance)
        if self.place.market:
            stage.rented.pass_hours(chance.randrange(4))
        if self.damage:  # Only under the model of the engine.
            stage.damage(self.damage, chance)
        if self.is_journal_lost:
            shutil.rmtree(stage.home / "journal", ignore_errors=True)
        return 1 if attack.verb is Verb.UP and not self.damage else None

    def __str__(self) -> str:
        what = str(self.attack or "faults are injected")
        lost = f"; its state {self.damage}" if self.damage else ""
        journal = " and its journal gone" if self.is_journal_lost else ""
        return f"{self.place}: {what}{lost}{journal}; then {self.then}; seed {self.seed}"


def _storm(stage: Stage, chance: Random) -> int | None:
    """Go up while faults are injected, perhaps again, perhaps down; return how often a machine may be ordered in all."""
    orders: int | None = 1
    for number in range(chance.randint(1, LONGEST_STORM)):
        verb = chance.choice([Verb.UP, Verb.UP, Verb.DESTROY]) if number else Verb.UP
        orders = None if verb is Verb.DESTROY else orders
        _check_truth(verb, stage.run(verb, refresh=chance.random() < 0.5), stage)
    stage.rented.stop_faults()
    return orders


def _check_truth(verb: Verb, outcome: Outcome, stage: Stage) -> None:
    """Exit code 0 if and only if the goal is reached; else sentences that are true."""
    verdict = stage.verdict
    living = (each.name for each in billed(stage.rented.history()) if each.closed is None)
    still = {name for name in living if name.endswith(f".{stage.domain}")}
    if outcome.exit_code == 0:
        wanted = stage.names if verb is Verb.UP else frozenset()
        verdict.orphans += [f"{verb} exited with 0 and {name} differs" for name in sorted(wanted ^ still)]
    elif not outcome.failures:
        verdict.prompts.append(f"{verb} exited with {outcome.exit_code} without a word")
    for text in outcome.failures:
        said = f"{verb} said '{text}'"
        verdict.prompts += [said for words in BAD_WORDS if words in text]
        host = text.partition(":")[0]
        if f"{host}.{stage.domain}" in still and "othing was ordered." in text:
            verdict.orphans.append(f"{host} is billed although {said}")


def kills(place: Place, seed: int) -> Iterator[Case]:
    """List every way to strike a call.

    At each moment of each call a kill and one of the three other blows meet each target; at Paperspace a kill meets a target
    that the seed draws; and on the command line, where it takes longest, one blow that the seed draws meets each call.
    """
    for verb, call in product(Verb, range(1, MANY + 1)):
        chance = Random(f"{seed}-{place}-{verb}-{call}")
        targets = [chance.choice(list(Target))] if place is Place.PAPERSPACE else list(Target)
        ways = [(target, moment, Blow.KILL) for target, moment in product(targets, Moment)]
        if place is not Place.PAPERSPACE:
            ways += [(target, moment, chance.choice(SOFTER)) for target, moment, _ in ways]
        if place is Place.COMMAND_LINE:
            ways = [chance.choice(ways)]
        for number, (target, moment, blow) in enumerate(ways):
            attack = Attack(verb, call, target, blow, moment)
            yield Case(place, attack, chance.choice(list(Verb)), seed * OF_A_SEED + call * len(ways) + number)


def losses(verb: Verb, seed: int) -> Iterator[Case]:
    """List kills that leave a damaged state behind, perhaps no journal either."""
    for number, (call, damage) in enumerate(product(range(1, MANY + 1), Damage)):
        chance = Random(f"{seed}-{verb}-{number}")
        attack = Attack(verb, call, Target.TREE, Blow.KILL, chance.choice(list(Moment)))
        then, is_lost = chance.choice(list(Verb)), chance.random() < 0.3
        yield Case(Place.SOFTLAYER, attack, then, seed * OF_A_SEED + number, damage, is_lost)


def storms(place: Place, cases: int, seed: int) -> Iterator[Case]:
    """List the cases in which a part of all calls goes wrong."""
    for number in range(cases):
        yield Case(place, None, Verb.UP if number % 4 else Verb.DESTROY, seed * OF_A_SEED + number)


def laid_out(seed: int) -> Sweeps:
    """Lay out and number all cases."""
    lists: dict[str, list[workers.Case]] = {
        "command line": [*kills(Place.COMMAND_LINE, seed)],
        "kill": [*kills(Place.SOFTLAYER, seed)],
        "loss": [*losses(Verb.UP, seed), *losses(Verb.DESTROY, seed)],
        "faults": [*storms(Place.SOFTLAYER, 500, seed)],
        "paperspace": [*kills(Place.PAPERSPACE, seed), *storms(Place.PAPERSPACE, 60, seed)],
        "queue": [*queue_sweep.cases(seed)],
        "guard": [*guard.cases(seed)],
    }
    numbers = count(1)
    return {name: {next(numbers): case for case in cases} for name, cases in lists.items()}


def counted(seed: int, pool: ProcessPoolExecutor) -> Sweeps:
    """Lay the cases out, without strikes at calls that a clean command does not make.

    A wait asks more or less often: of many counts the fewest, and with all workers busy, as when the cases are played.
    """
    places = [Place.COMMAND_LINE, *[Place.SOFTLAYER] * WORKERS, *[Place.PAPERSPACE] * (WORKERS // 2)]
    fewest: dict[tuple[Place, Verb], int] = {}
    for calls in pool.map(count_calls, places):
        for key, number in calls.items():
            fewest[key] = min(number, fewest.get(key, MANY))

    of_guard = dict(zip(guard.MARKETS, pool.map(guard.count_calls, guard.MARKETS), strict=True))

    def is_made(case: workers.Case) -> bool:
        if isinstance(case, guard.Case):
            return case.number <= of_guard[case.vendor]
        attack = case.attack if isinstance(case, Case) else None
        return not attack or attack.number <= fewest[case.place, attack.verb]

    return {
        name: {number: case for number, case in cases.items() if is_made(case)}
        for name, cases in laid_out(seed).items()
    }


def count_calls(place: Place) -> dict[tuple[Place, Verb], int]:
    """Count the calls of a clean ``up`` and a clean ``destroy``."""
    counts = {}
    with workers.theatre().stage(place.market) as stage:
        for verb in Verb:
            stage.wire.arm(None)
            outcome = stage.run(verb)
            assert outcome.exit_code == 0, outcome.failures
            counts[place, verb] = len(stage.wire.calls)
    return counts


def whole(sweeps: Sweeps, seed: int) -> dict[int, workers.Case]:
    """Return all cases; the slow ones come first, so that no worker is left alone with one at the end."""
    quick = [item for name, cases in sweeps.items() if name != "command line" for item in cases.items()]
    return {**sweeps["command line"], **dict(Random(seed).sample(quick, len(quick)))}


def sample(sweeps: Sweeps, seed: int) -> dict[int, workers.Case]:
    """Draw some of the cases; of the kills so that each call of each command and each way to strike occurs."""
    chance = Random(seed)
    drawn: dict[int, workers.Case] = {}
    for name, size in SIZES.items():
        cases = sweeps[name]
        order = chance.sample(list(cases), len(cases))
        chosen = _covering(cases, order) if name == "kill" else []
        others = [number for number in order if number not in chosen]
        chosen += others[: max(size - len(chosen), 0)]
        drawn |= {number: cases[number] for number in chosen}
    return drawn


def _covering(cases: Mapping[int, Case], order: Sequence[int]) -> list[int]:
    """Choose cases, each of which strikes a call or in a way that no earlier one does."""
    seen: set[tuple] = set()
    chosen = []
    for number in order:
        attack = cases[number].attack
        new = {(attack.verb, attack.number), (attack.target, attack.blow, attack.moment, cases[number].then)}
        if not new <= seen:
            seen |= new
            chosen.append(number)
    return chosen
