"""The kill sweep: a command is struck at one call, another command follows, and the account is judged."""

import enum
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from random import Random
from typing import Any

from tools.chaos.checker import Expected, Verdict
from tools.chaos.clocks import disturb
from tools.chaos.engine import Command, Verb
from tools.chaos.program import DOMAIN, MARK
from tools.chaos.provider import Provider
from tools.chaos.stage import Stage, Theatre
from tools.chaos.wire import Moment, Strike

HOSTNAMES = ("gpu-0", "gpu-1")
NAMES = frozenset(f"{hostname}.{DOMAIN}" for hostname in HOSTNAMES)
LISTS_LAG_S = 120.0
TLS_EVERY = 5
BROKEN_SHARE = 0.05
LONGEST_LIFE_S = 60.0
"""An orphaned provider notices within five seconds and has another four for what is under way; the rest is for a busy computer."""


class Target(enum.StrEnum):
    """Who is struck."""

    PROVIDER = "provider"
    TREE = "tree"
    ENGINE = "engine"


class Blow(enum.StrEnum):
    """With what."""

    KILL = "KILL"
    TERM = "TERM"
    INT = "INT"
    INT_INT = "INT-INT"


SOFTER = tuple(blow for blow in Blow if blow is not Blow.KILL)
"""After these a provider may still write its state."""


@dataclass(frozen=True)
class Case:
    """One run of the sweep."""

    verb: Verb
    number: int
    target: Target
    blow: Blow
    moment: Moment
    then: Verb
    seed: int

    @property
    def settings(self) -> dict[str, Any]:
        """In a third of the runs the account's lists lag behind; others are over TLS, which breaks now and then."""
        lag_s = Random(self.seed).uniform(-LISTS_LAG_S * 2, LISTS_LAG_S)
        return ({"list_lag_s": lag_s} if lag_s > 0 else {}) | breaking_tls(self.seed)

    def play(self, theatre: Theatre) -> Verdict:
        """Strike, disturb the clocks, run the next command, and judge; after an ``up`` a second one must find nothing to do."""
        chance, verdict = Random(self.seed), Verdict()
        with theatre.stage(**self.settings) as stage:
            if self.verb is Verb.DESTROY:
                stage.succeeds(Verb.UP, verdict)
            strike(stage, self, chance, verdict)
            disturb(stage.home / "journal", Random(self.seed))
            stage.pass_hours(chance.randrange(4))
            # What a struck destroy has removed may still be in the state, and only a refresh looks: as `make up` and recover do.
            refresh = self.then is Verb.UP and (self.verb is Verb.DESTROY or chance.random() < 0.5)
            orders = 1 if self.verb is Verb.UP else None
            stage.succeeds(self.then, verdict, refresh=refresh)
            if self.then is Verb.UP:
                stage.is_settled(verdict, Expected(MARK, NAMES, orders))
                stage.succeeds(Verb.DESTROY, verdict)
            verdict.add(stage.judge(Expected(MARK, frozenset(), orders)))
        return verdict

    def __str__(self) -> str:
        return (
            f"{self.verb} struck with {self.blow} ({self.target}) at call {self.number}, {self.moment.name}; "
            f"then {self.then}; seed {self.seed}"
        )


def breaking_tls(seed: int) -> dict[str, Any]:
    """Choose a part of the cases, and settings by which TLS breaks after a part of their calls was carried out."""
    is_tls = seed % TLS_EVERY == 0
    return {"seed": seed, "tls": True, "faults": {"broken_tls": BROKEN_SHARE}} if is_tls else {}


def cases(verb: Verb, calls: int, seed: int) -> Iterator[Case]:
    """List every case of a command that makes so many calls.

    Each call is met by a kill, and by one of the three other blows that the seed draws. Beyond what is asked the engine alone is struck too,
    as a terminal does it; there the seed draws what comes next as well.
    """
    every = product(range(1, calls + 1), Target, Blow, Moment, Verb)
    for number, (call, target, blow, moment, then) in enumerate(every):
        place = f"{seed}-{verb}-{call}-{target}-{moment}"
        next_verb = Random(f"{place}-{blow}").choice(list(Verb))
        if blow in (Blow.KILL, Random(place).choice(SOFTER)) and (target is not Target.ENGINE or then is next_verb):
            yield Case(verb, call, target, blow, moment, then, seed * 100_000 + number)


def sample(every: list[Case], seed: int, size: int) -> list[Case]:
    """Draw cases so that each call of each command and each combination of target, blow and moment occurs."""
    drawn, chance = [], Random(seed)
    missing = {(case.verb, case.number) for case in every} | {_combination(case) for case in every}
    shuffled = chance.sample(every, len(every))
    for case in shuffled:
        new = {(case.verb, case.number), _combination(case)} & missing
        if len(new) == 2 or (new and len(drawn) < size):
            missing -= new
            drawn.append(case)
    rest = [case for case in shuffled if case not in set(drawn)]
    for case in rest:
        new = {(case.verb, case.number), _combination(case)} & missing
        if new:
            missing -= new
            drawn.append(case)
    return drawn + [case for case in rest if case not in set(drawn)][: max(size - len(drawn), 0)]


def _combination(case: Case) -> tuple:
    return case.target, case.blow, case.moment, case.then


def count_calls(theatre: Theatre) -> dict[Verb, int]:
    """Count the calls of a clean ``up`` and a clean ``destroy``."""
    counts = {}
    with theatre.stage() as stage:
        for verb in (Verb.UP, Verb.DESTROY):
            outcome = stage.run(verb)
            assert outcome.exit_code == 0, outcome.failures
            counts[verb] = len(stage.wire.calls)
    return counts


def strike(stage: Stage, case: Case, chance: Random, verdict: Verdict) -> None:
    """Run the command of a case and strike it at its call."""
    provider = stage.start()
    command = stage.command(provider)
    act = partial(_act, command, case, chance.uniform(0, 0.02))
    stage.wire.arm(Strike(case.number, case.moment, act, command.hold, lambda: provider.process.ended(0)))
    outcome = command.run(case.verb)
    if outcome.exit_code == Command.KILLED:
        verdict.prompts += _outlived(provider)
    else:
        provider.leave()


def _outlived(provider: Provider) -> list[str]:
    began = time.monotonic()
    gone = provider.process.ended(LONGEST_LIFE_S)
    provider.process.signal(signal.SIGKILL)
    provider.process.ended(LONGEST_LIFE_S)
    provider.process.release()
    return [] if gone else [f"the provider outlived its engine by {time.monotonic() - began:.0f} s"]


def _act(command: Command, case: Case, pause_s: float) -> None:
    """Strike; a blow after the reply comes a little later, so that it meets the provider at different places."""
    try:
        _blow(command, case, pause_s)
    finally:
        command.release()


def _blow(command: Command, case: Case, pause_s: float) -> None:
    if case.moment is Moment.REPLIED:
        time.sleep(pause_s)
    for number in range(2 if case.blow is Blow.INT_INT else 1):
        if number:
            time.sleep(pause_s)
        if case.target in (Target.ENGINE, Target.TREE):
            (command.kill if case.blow is Blow.KILL else command.interrupt)()
        if case.target in (Target.PROVIDER, Target.TREE):
            _signal(command.provider, case.blow)


def _signal(provider: Provider, blow: Blow) -> None:
    numbers = {Blow.KILL: signal.SIGKILL, Blow.TERM: signal.SIGTERM}
    provider.process.signal(numbers.get(blow, signal.SIGINT))
    if blow is Blow.KILL:
        provider.process.ended(LONGEST_LIFE_S)
