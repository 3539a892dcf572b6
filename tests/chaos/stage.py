"""Stage of one chaos run: its account, state and home, and commands that come, are struck and go."""

import enum
import signal
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random

from tests.chaos.accounts import CLOCK_RATE, Rented
from tests.chaos.checker import Verdict, billed, judge, wrong_receipts
from tests.chaos.engine import Command, Outcome, State, StateError, Verb, backup_of
from tests.chaos.fork_server import Process, fork
from tests.chaos.market import HOSTNAMES, Program
from tests.chaos.provider import Provider
from tests.chaos.wire import Moment, Strike, Wire

LONGEST_LIFE_S = 60.0
"""An orphaned provider notices within five seconds and has another four for what is under way; the rest is for a busy computer."""


class Target(enum.StrEnum):
    """Process that is struck."""

    PROVIDER = "provider"
    TREE = "tree"
    ENGINE = "engine"


class Damage(enum.StrEnum):
    """Damage to a state file."""

    TRUNCATED = "truncated"
    EMPTIED = "emptied"
    STALE = "stale"
    GONE = "gone"


class Blow(enum.StrEnum):
    """With what: one signal, or two."""

    KILL = "KILL"
    TERM = "TERM"
    INT = "INT"
    INT_INT = "INT-INT"


@dataclass(frozen=True)
class Attack:
    """Which command is struck at which moment of which call, and how."""

    verb: Verb
    number: int
    target: Target
    blow: Blow
    moment: Moment

    def carry_out(self, send: Callable[[signal.Signals], None], pause_s: float) -> None:
        """Strike; a blow after the reply comes a little later, so that it meets the command at different places."""
        if self.moment is Moment.REPLIED:
            time.sleep(pause_s)
        for place, name in enumerate(self.blow.split("-")):
            if place:
                time.sleep(pause_s)
            send(signal.Signals[f"SIG{name}"])

    def __str__(self) -> str:
        return f"{self.verb} struck with {self.blow} ({self.target}) at call {self.number}, {self.moment.name}"


class Stage(ABC):
    """One run's account and home, the commands that are run there, and what went wrong."""

    def __init__(self, wire: Wire, rented: Rented, home: Path, domain: str) -> None:
        self.wire = wire
        self.rented = rented
        self.home = home
        self.domain = domain
        self.owner = domain.removesuffix(".microcluster")
        self.names = frozenset(f"{hostname}.{domain}" for hostname in HOSTNAMES)
        self.verdict = Verdict()

    @abstractmethod
    def run(self, verb: Verb, *, refresh: bool = False, is_settled: bool = False) -> Outcome:
        """Run a command that nobody disturbs; one after which all is settled has nothing to change."""

    @abstractmethod
    def strike(self, attack: Attack, chance: Random) -> None:
        """Run a command and strike it at a call."""

    @abstractmethod
    def recover(self) -> None:
        """Do what a person does after a command that was struck."""

    def succeeds(self, verb: Verb, *, refresh: bool = False, is_settled: bool = False) -> None:
        """Run a command that has to succeed; where it does not, a person would be needed."""
        self.wire.arm(None)
        outcome = self.run(verb, refresh=refresh, is_settled=is_settled)
        if outcome.exit_code:
            self.verdict.prompts.append(f"{verb} exited with {outcome.exit_code}: {' | '.join(outcome.failures)}")
        if is_settled and (outcome.changed or self.wire.writes()):
            self.verdict.prompts.append(f"a second up changed {outcome.changed} with the calls {self.wire.writes()}")

    def judge(self, names: frozenset[str], orders: int | None) -> None:
        """Judge what the account has lived through; ``names`` are the machines that have to be there."""
        self.verdict.add(judge(self.rented.history(), self.owner, names, orders))

    def compare_receipts(self, said: list[str]) -> None:
        """Compare the receipts in what was said with the account's charges until now."""
        history = self.rented.history()
        if self.rented.market.only_machines_cost or any(each.name in self.names for each in billed(history)):
            self.verdict.wrong_dollars += wrong_receipts(history, self.owner, said)


class EngineStage(Stage):
    """Real provider processes under the model of the engine."""

    def __init__(self, wire: Wire, rented: Rented, folder: Path) -> None:
        self._market = rented.market
        super().__init__(wire, rented, folder / "home", self._market.domain)
        self.state_file = folder / "state.json"
        self.home.mkdir()
        self._market.prepare(self.home)

    def run(self, verb: Verb, *, refresh: bool = False, is_settled: bool = False) -> Outcome:
        if verb is Verb.DESTROY and "ledger" not in State(self.state_file).resources:
            # Down without a state: a ledger alone is made anew, and its end cancels what bears the mark.
            made = self._run(Verb.UP, self._market.program[:1])
            if made.exit_code:
                return made
        return self._run(verb, self._market.program, refresh=refresh)

    def strike(self, attack: Attack, chance: Random) -> None:
        provider = self._provider()
        command = Command(provider, State(self.state_file), self._market.program)
        act = partial(self._blow, command, attack, chance.uniform(0, 0.02))
        is_cut = partial(provider.process.ended, 0)
        self.wire.arm(Strike(attack.number, attack.moment, act, command.writing.clear, is_cut))
        if command.run(attack.verb).exit_code != Command.KILLED:
            provider.leave()
            return
        if not provider.process.ended(LONGEST_LIFE_S):
            self.verdict.prompts.append(f"the provider outlived its engine by {LONGEST_LIFE_S:g} s")
            provider.kill()
        provider.process.release()

    def recover(self) -> None:
        try:
            State(self.state_file)
        except StateError:
            self.state_file.unlink()

    def damage(self, damage: Damage, chance: Random) -> None:
        """Damage the state file; where there is no older one beside it, a stale state is an absent one."""
        path, backup = self.state_file, backup_of(self.state_file)
        content = path.read_bytes() if path.exists() else b""
        if damage is Damage.TRUNCATED and content:
            path.write_bytes(content[: chance.randrange(1, len(content))])
        elif damage is Damage.EMPTIED:
            path.write_bytes(b"")
        elif damage is Damage.STALE and backup.exists():
            path.write_bytes(backup.read_bytes())
        else:
            path.unlink(missing_ok=True)

    def _run(self, verb: Verb, program: Program, *, refresh: bool = False) -> Outcome:
        provider = self._provider()
        try:
            outcome = Command(provider, State(self.state_file), program, refresh=refresh).run(verb)
        finally:
            provider.leave()
        self.compare_receipts(provider.ears.said)
        return outcome

    def _provider(self) -> Provider:
        vendor, log = self._market.vendor, self.home / "provider.log"
        user = {"MICROCLUSTER_HOME": str(self.home), "HOME": str(self.home), "NO_PROXY": "127.0.0.1"}

        def start(engine_address: str) -> Process:
            return fork(f"microcluster.accounts.{vendor}.__main__", [engine_address], user, log)

        return Provider(start, 1 / CLOCK_RATE, vendor, **{self._market.key_setting: str(self.rented.config_file)})

    def _blow(self, command: Command, attack: Attack, pause_s: float) -> None:
        def send(number: signal.Signals) -> None:
            is_kill = number is signal.SIGKILL
            if attack.target is not Target.PROVIDER:
                (command.kill if is_kill else command.interrupt)()
            if attack.target is not Target.ENGINE:
                command.provider.process.signal(number)
                command.provider.process.ended(LONGEST_LIFE_S if is_kill else 0)

        try:
            attack.carry_out(send, pause_s)
        finally:
            command.writing.set()
