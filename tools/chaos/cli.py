"""The kill sweep through the real command line: one case for each call, recovered by `fab recover` and `make down`."""

import signal
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from tools.chaos.checker import Expected, Verdict, judge, wrong_receipts
from tools.chaos.command_line import DESTROY, STACK, UP, CommandLine, Running, Said
from tools.chaos.damage import Damage, inflict
from tools.chaos.engine import Verb
from tools.chaos.kill import HOSTNAMES, Blow, Target, breaking_tls
from tools.chaos.stage import READS, Theatre
from tools.chaos.wire import Moment, Strike

LINES = {Verb.UP: UP, Verb.DESTROY: DESTROY}
RECOVER = f"fab recover --stack {STACK} --yes"
RECEIPT = f"fab receipt --stack {STACK}"
DOWN = f"python -m microcluster down --stack {STACK}"
SIGNALS = {Blow.KILL: signal.SIGKILL, Blow.TERM: signal.SIGTERM}
SHORT_S = 0.2
FEWEST_CALLS = 20
"""Every command makes more."""


@dataclass(frozen=True)
class Case:
    """One run."""

    verb: Verb
    number: int
    target: Target
    blow: Blow
    moment: Moment
    then: Verb
    seed: int
    damage: Damage | None = None

    @property
    def settings(self) -> dict[str, Any]:
        """A part of the runs is over TLS, which breaks now and then."""
        return breaking_tls(self.number)

    def play(self, theatre: Theatre) -> Verdict:
        """Strike a command, recover, run the next one, and judge."""
        verdict = Verdict()
        with tempfile.TemporaryDirectory(prefix="microcluster-chaos-") as folder:
            copy = theatre.copy()
            with copy.home(theatre.server, Path(folder) / "home", **self.settings) as line:
                _Play(self, theatre, line, verdict).run()
        return verdict

    def __str__(self) -> str:
        lost = f"; its state {self.damage}, then make down" if self.damage else f"; then {self.then}"
        return f"pulumi {self.verb} struck with {self.blow} ({self.target}) at call {self.number}, {self.moment.name}{lost}; seed {self.seed}"


class _Play:
    def __init__(self, case: Case, theatre: Theatre, line: CommandLine, verdict: Verdict) -> None:
        self._case = case
        self._wire = theatre.server.wire
        self._line = line
        self._verdict = verdict
        self._chance = Random(case.seed)

    def run(self) -> None:
        case = self._case
        if case.verb is Verb.DESTROY:
            self._succeeds(UP)
        self._strike()
        if case.damage:
            inflict(case.damage, self._line.state_file, self._line.backup_file, self._chance)
            self._succeeds(DOWN)
        else:
            self._succeeds(RECOVER)
            self._succeeds(LINES[case.then])
            if case.then is Verb.UP:
                self._is_settled()
                self._succeeds(DESTROY)
        self._succeeds(RECEIPT)
        self._judge(frozenset())

    def _strike(self) -> None:
        running: list[Running] = []
        act = partial(self._act, running)
        self._wire.arm(Strike(self._case.number, self._case.moment, act))
        running.append(self._line.start(LINES[self._case.verb]))
        self._expects_no_question(running[0].said())

    def _act(self, running: list[Running]) -> None:
        case = self._case
        if case.moment is Moment.REPLIED:
            time.sleep(self._chance.uniform(0, SHORT_S))
        for number in range(2 if case.blow is Blow.INT_INT else 1):
            if number:
                time.sleep(self._chance.uniform(0, SHORT_S))
            how = {Target.ENGINE: "signal", Target.TREE: "signal_tree", Target.PROVIDER: "signal_provider"}[case.target]
            getattr(running[0], how)(SIGNALS.get(case.blow, signal.SIGINT))

    def _succeeds(self, line: str) -> Said:
        self._wire.arm(None)
        said = self._line.run(line)
        if said.exit_code:
            last = " | ".join(text.strip() for text in said.output.splitlines()[-12:] if text.strip())
            self._verdict.prompts.append(f"`{line}` exited with {said.exit_code}: {last}")
        self._expects_no_question(said)
        self._verdict.wrong_dollars += wrong_receipts(self._line.rented.history(), self._line.mark, [said.output])
        return said

    def _expects_no_question(self, said: Said) -> None:
        if said.asks:
            self._verdict.prompts.append(f"a question: {said.output[-500:]}")

    def _is_settled(self) -> None:
        self._succeeds(f"{UP} --expect-no-changes")
        writes = [call for call in self._wire.calls if not call.split("::")[-1].startswith(READS)]
        if writes:
            self._verdict.prompts.append(f"a second up made the calls {writes}")
        self._judge(frozenset(f"{host}.{STACK}-{self._line.mark}.microcluster" for host in HOSTNAMES))

    def _judge(self, names: frozenset[str]) -> None:
        orders = 1 if self._case.verb is Verb.UP else None
        self._verdict.add(judge(self._line.rented.history(), Expected(self._line.mark, names, orders)))


def cases(verb: Verb, calls: int, seed: int) -> Iterator[Case]:
    """Draw one case for each kind of damage, and one for each call of a command."""
    for place, damage in enumerate(Damage):
        chance = Random(f"cli-{seed}-{verb}-{damage}")
        number, moment = chance.randint(1, FEWEST_CALLS), chance.choice(list(Moment))
        yield Case(verb, number, Target.TREE, Blow.KILL, moment, Verb.DESTROY, seed * 1000 + 500 + place, damage)
    for number in range(1, calls + 1):
        chance = Random(f"cli-{seed}-{verb}-{number}")
        target, blow = chance.choice(list(Target)), chance.choice(list(Blow))
        moment, then = chance.choice(list(Moment)), chance.choice(list(Verb))
        yield Case(verb, number, target, blow, moment, then, seed * 1000 + number)


def count_calls(theatre: Theatre) -> dict[Verb, int]:
    """Count the calls of a clean ``up`` and a clean ``destroy``."""
    counts, wire = {}, theatre.server.wire
    with (
        tempfile.TemporaryDirectory(prefix="microcluster-chaos-") as folder,
        theatre.copy().home(theatre.server, Path(folder) / "home") as line,
    ):
        for verb, words in LINES.items():
            wire.arm(None)
            said = line.run(words)
            assert said.exit_code == 0, said.output
            counts[verb] = len(wire.calls)
    return counts
