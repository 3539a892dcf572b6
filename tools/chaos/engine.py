"""A model of Pulumi's engine: what one `up` or `destroy` does with the provider and the state, also when it is interrupted or killed."""

import enum
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from tools.chaos.program import Declared, Program
from tools.chaos.provider import Failed, Provider
from tools.chaos.state import Resource, State

LONGEST_COMMAND_S = 180.0
"""Against a command that never ends; a clean one takes two seconds on a quiet computer."""


class Verb(enum.StrEnum):
    """The two commands."""

    UP = "up"
    DESTROY = "destroy"


class Dropped(Exception):
    """The engine is gone, or throws results away: nothing more is written."""


@dataclass
class Outcome:
    """How a command ended."""

    exit_code: int = 0
    changed: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)


class Command:
    """One run of the engine with a provider process of its own."""

    INTERRUPTED_TWICE = 8
    KILLED = 137
    HANGS = 124

    def __init__(self, provider: Provider, state: State, program: Program, *, refresh: bool = False) -> None:
        self.provider = provider
        self.state = state
        self._program = program
        self._refresh = refresh
        self._outcome = Outcome(said=provider.ears.said)
        self._stopping = threading.Event()
        self._writing = threading.Event()
        self._writing.set()
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._signals = 0

    def run(self, verb: Verb) -> Outcome:
        """Run to the end, or until somebody kills or interrupts it."""
        runner = threading.Thread(target=self._run, args=(verb,), daemon=True)
        runner.start()
        if not self._over.wait(LONGEST_COMMAND_S):
            self._outcome.failures.append(f"{verb} was not over after {LONGEST_COMMAND_S:g} s")
            with self._lock:
                self._end(self.HANGS)
        return self._outcome

    def hold(self) -> None:
        """Keep results from being written until ``release``."""
        self._writing.clear()

    def release(self) -> None:
        """Let results be written again."""
        self._writing.set()

    def interrupt(self) -> None:
        """Take a SIGINT or SIGTERM: no new steps and a Cancel; the second one drops what is still under way."""
        with self._lock:
            self._signals += 1
            if self._over.is_set():
                return
            if self._signals > 1:
                self._end(self.INTERRUPTED_TWICE)
                return
            self._stopping.set()
        self.provider.cancel()

    def kill(self) -> None:
        """Take a SIGKILL: intents stay on disk, results are lost, the provider lives on."""
        with self._lock:
            if not self._over.is_set():
                self.provider.vanish()
                self._end(self.KILLED)

    def _end(self, code: int) -> None:
        self._outcome.exit_code = code
        self._over.set()

    def _run(self, verb: Verb) -> None:
        try:
            if self._refresh:
                self._each([self.state.resources[name] for name in self.state.resources], self._refreshed)
            if verb is Verb.UP:
                for level in self._program:
                    self._each(level, self._step)
            else:
                for level in reversed(self._program):
                    self._each([each for each in level if each.name in self.state.resources], self._delete)
        except Dropped:
            return
        with self._lock:
            if not self._over.is_set():
                failed = self._outcome.failures or self._stopping.is_set()
                self._end(1 if failed else 0)

    def _each(self, level: list, act: Callable[..., None]) -> None:
        """Take steps beside one another; after a failure or an interrupt no new one begins, running ones are awaited."""
        if not level or self._outcome.failures or self._stopping.is_set():
            return
        with ThreadPoolExecutor(len(level)) as pool:
            for done in [pool.submit(act, each) for each in level]:
                done.result()

    def _step(self, declared: Declared) -> None:
        old = self.state.resources.get(declared.name)
        try:
            inputs = self.provider.check(declared.kind, declared.name, old, declared.inputs(self.state.resources))
            if old is None:
                self._create(declared, inputs)
                return
            found = self.provider.diff(old, inputs)
        except Failed as failed:
            self._failed(declared.name, failed)
            return
        if found.replaces:
            self._delete(declared)
            if declared.name not in self.state.resources:
                self._create(declared, inputs)
        elif old.init_errors or found.changes == found.DIFF_SOME:
            self._update(old, inputs)

    def _create(self, declared: Declared, inputs: dict) -> None:
        self._carry_out("create", declared.name, lambda: self.provider.create(declared.kind, declared.name, inputs))

    def _update(self, old: Resource, inputs: dict) -> None:
        self._carry_out("update", old.name, lambda: self.provider.update(old, inputs))

    def _delete(self, declared: Declared) -> None:
        old = self.state.resources[declared.name]
        self._carry_out("delete", declared.name, lambda: self.provider.delete(old))

    def _carry_out(self, what: str, name: str, act: Callable[[], Resource | None]) -> None:
        """Write down what is about to be done, do it, and write down what became of it."""
        old = self.state.resources.get(name)
        self._write(self.state.intend, what, name)
        try:
            made = act()
        except Failed as failed:
            self._write(self.state.settle, what, name)
            self._failed(name, failed)
            if left := failed.unfinished:
                self._write(self.state.record, what, replace(left, inputs=old.inputs) if old else left)
            return
        self._changed(f"{what} {name}")
        if made is None:
            self._write(self.state.forget, what, name)
        else:
            self._write(self.state.record, what, made)

    def _refreshed(self, old: Resource) -> None:
        try:
            live = self.provider.read(old)
        except Failed as failed:
            if failed.unfinished is None:
                self._failed(old.name, failed)
                return
            live = failed.unfinished
        if live is None:
            self._write(self.state.forget, "read", old.name)
        else:
            self._write(self.state.record, "read", live)

    def _write(self, act: Callable[..., None], *what: object) -> None:
        self._writing.wait()
        with self._lock:  # As a kill takes it: what is dead writes nothing any more.
            if self._over.is_set():
                raise Dropped
            act(*what)

    def _failed(self, name: str, failed: Failed) -> None:
        self._outcome.failures.append(f"{name}: {failed}")

    def _changed(self, what: str) -> None:
        self._outcome.changed.append(what)
