"""What one run plays on: an account of its own, a state of its own, and providers that come and go."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tools.chaos.account import CLOCK_RATE, AccountServer, Rented
from tools.chaos.checker import Expected, Verdict, judge, wrong_receipts
from tools.chaos.command_line import Copy
from tools.chaos.engine import Command, Outcome, Verb
from tools.chaos.process import Process
from tools.chaos.program import MARK, Program, cluster
from tools.chaos.provider import Provider
from tools.chaos.state import State
from tools.chaos.wire import Wire
from tools.chaos.zygote import Zygote

HOUR_S = 3600
QUEUE_COMMANDS = "tools.chaos.queue"
READS = ("get", "is", "verify", "generateOrderTemplate", "find", "check")


class Theatre:
    """What one worker process keeps for all its runs: the fork server and the account's port."""

    def __init__(self) -> None:
        self.zygote = Zygote()
        self.server = AccountServer()
        self._folder = tempfile.TemporaryDirectory(prefix="microcluster-chaos-")
        self._copy: Copy | None = None
        self._queue_commands: Zygote | None = None

    def copy(self) -> Copy:
        """Make a copy of the project, or return the one that is there."""
        if self._copy is None:
            self._copy = Copy(Path(self._folder.name))
        return self._copy

    @property
    def queue_commands(self) -> Zygote:
        """The fork server of commands before a queue."""
        self._queue_commands = self._queue_commands or Zygote(QUEUE_COMMANDS)
        return self._queue_commands

    @contextmanager
    def stage(self, program: Program | None = None, **settings: Any) -> "Iterator[Stage]":
        """Open an account and a home for one run."""
        folder = Path(tempfile.mkdtemp(prefix="microcluster-chaos-"))
        try:
            with self.server.opened(folder / "account", **settings) as rented:
                yield Stage(self, rented, folder, program or cluster())
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def close(self) -> None:
        """End both."""
        self.server.close()
        for each in filter(None, (self.zygote, self._queue_commands)):
            each.close()
        self._folder.cleanup()


class Stage:
    """One run's account, state and home."""

    def __init__(self, theatre: Theatre, rented: Rented, folder: Path, program: Program) -> None:
        self._theatre = theatre
        self.rented = rented
        self.program = program
        self.state_file = folder / "state.json"
        self.backup_file = State(self.state_file).backup
        self.home = folder / "home"
        self.home.mkdir()
        self._wrong_dollars: list[str] = []

    @property
    def wire(self) -> Wire:
        """The wire to the account."""
        return self._theatre.server.wire

    def start(self) -> Provider:
        """Start a provider."""
        return Provider(self._fork, self.rented.config_file, 1 / CLOCK_RATE)

    def command(self, provider: Provider, *, refresh: bool = False, only_ledger: bool = False) -> Command:
        """Begin a command with what the state file holds."""
        program = self.program[:1] if only_ledger else self.program
        return Command(provider, State.load(self.state_file), program, refresh=refresh)

    def run(self, verb: Verb, **options: bool) -> Outcome:
        """Run a command that nobody disturbs."""
        provider = self.start()
        self.wire.arm(None)
        try:
            outcome = self.command(provider, **options).run(verb)
        finally:
            provider.leave()
        self._wrong_dollars += wrong_receipts(self.rented.history(), MARK, outcome.said)
        return outcome

    def succeeds(self, verb: Verb, verdict: Verdict, **options: bool) -> Outcome:
        """Run a command that has to succeed; where it does not, a person would be needed."""
        outcome = self.run(verb, **options)
        if outcome.exit_code:
            verdict.prompts.append(f"{verb} exited with {outcome.exit_code}: {' | '.join(outcome.failures)}")
        return outcome

    def is_settled(self, verdict: Verdict, expected: Expected) -> None:
        """Run ``up`` once more: it changes nothing, and the account is as expected."""
        outcome = self.succeeds(Verb.UP, verdict)
        writes = [call for call in self.wire.calls if not call.split("::")[-1].startswith(READS)]
        if outcome.changed or writes:
            verdict.prompts.append(f"a second up changed {outcome.changed} with the calls {writes}")
        verdict.add(self.judge(expected))

    def pass_hours(self, hours: float) -> None:
        """Let the account's clock go on, so that a charge grows."""
        with self.rented.account.lock:
            self.rented.account.clock.step(hours * HOUR_S)

    def judge(self, expected: Expected) -> Verdict:
        """Judge what the account has lived through."""
        verdict = judge(self.rented.history(), expected)
        verdict.wrong_dollars += self._wrong_dollars
        return verdict

    def _fork(self, engine_address: str) -> Process:
        user = {"MICROCLUSTER_HOME": str(self.home), "HOME": str(self.home), "NO_PROXY": "127.0.0.1"}
        return self._theatre.zygote.fork([engine_address], user, self.home / "provider.log")
