"""The loss sweep: a killed command leaves a damaged state behind, perhaps no journal either, and the account is put in order all the same."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from random import Random

from tools.chaos.checker import Expected, Verdict
from tools.chaos.damage import Damage, inflict
from tools.chaos.engine import Verb
from tools.chaos.kill import NAMES, Blow, Target, strike
from tools.chaos.kill import Case as Kill
from tools.chaos.program import MARK
from tools.chaos.stage import Stage, Theatre
from tools.chaos.state import State, StateError
from tools.chaos.wire import Moment


@dataclass(frozen=True)
class Case:
    """One run: a kill, a loss, and what a person does then."""

    killed: Kill
    damage: Damage
    journal_lost: bool

    @property
    def number(self) -> int:
        """The call at which the command was killed."""
        return self.killed.number

    def play(self, theatre: Theatre) -> Verdict:
        """Kill, damage, begin anew where the state cannot be read, and judge."""
        chance, verdict = Random(self.killed.seed), Verdict()
        with theatre.stage() as stage:
            if self.killed.verb is Verb.DESTROY:
                stage.succeeds(Verb.UP, verdict)
            strike(stage, self.killed, chance, verdict)
            inflict(self.damage, stage.state_file, stage.backup_file, chance)
            if self.journal_lost:
                shutil.rmtree(stage.home / "journal", ignore_errors=True)
            _begin_anew(stage)
            if self.killed.then is Verb.UP:
                stage.succeeds(Verb.UP, verdict, refresh=True)
                stage.is_settled(verdict, Expected(MARK, NAMES))
            else:
                # Down without a state: a ledger alone is made anew, and its end cancels what bears the mark.
                stage.succeeds(Verb.UP, verdict, only_ledger=True)
            stage.succeeds(Verb.DESTROY, verdict)
            verdict.add(stage.judge(Expected(MARK, frozenset())))
        return verdict

    def __str__(self) -> str:
        lost = " and its journal" if self.journal_lost else ""
        return f"{self.killed}; its state {self.damage}{lost}"


def cases(verb: Verb, calls: int, seed: int) -> Iterator[Case]:
    """List the cases of a command that makes so many calls."""
    for number, (call, damage) in enumerate(product(range(1, calls + 1), Damage)):
        chance = Random(f"{seed}-{verb}-{number}")
        moment, then = chance.choice(list(Moment)), chance.choice(list(Verb))
        killed = Kill(verb, call, Target.TREE, Blow.KILL, moment, then, seed * 100_000 + number)
        # Lists that lag as well are played in tests/integration/test_provider_two_computers.py: the wait for them is long.
        yield Case(killed, damage, journal_lost=chance.random() < 0.3)


def _begin_anew(stage: Stage) -> None:
    try:
        State.load(stage.state_file)
    except StateError:
        stage.state_file.unlink()
