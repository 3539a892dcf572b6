"""A model of Pulumi's engine: what one `up` or `destroy` does with the provider and the state, also when it is interrupted or killed."""

import dataclasses
import enum
import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.chaos.market import Declared, Program
from tests.chaos.provider import Failed, Provider, Resource

LONGEST_COMMAND_S = 180.0
"""Against a command that never ends; a clean one takes two seconds on a quiet computer."""


class Verb(enum.StrEnum):
    """The two commands."""

    UP = "up"
    DESTROY = "destroy"


class StateError(Exception):
    """The state file cannot be read."""


class Dropped(Exception):
    """The engine is gone, or throws results away: nothing more is written."""


class State:
    """State of the engine, on disk as one file that is written after each step, beside the write before."""

    def __init__(self, path: Path) -> None:
        """Read the file; one that was never written is an empty state, a torn one is refused."""
        self.path = path
        self.resources: dict[str, Resource] = {}
        self._lock = threading.Lock()
        if path.exists():
            try:
                self.resources = {each["name"]: Resource(**each) for each in json.loads(path.read_text())}
            except (ValueError, KeyError, TypeError) as broken:
                raise StateError(f"reading {path.name}: {broken}. Run recover.") from broken

    def write(self, name: str, resource: Resource | None) -> None:
        """Write down what a step made, or that nothing is left of a resource."""
        with self._lock:
            self.resources.pop(name, None)
            if resource:
                self.resources[name] = resource
            content = [dataclasses.asdict(each) for each in self.resources.values()]
            if self.path.exists():
                self.path.replace(backup_of(self.path))
            self.path.write_text(json.dumps(content))


def backup_of(state: Path) -> Path:
    """Return where the write before the last lies."""
    return state.with_name(f"{state.name}.bak")


@dataclass
class Outcome:
    """Result of a command."""

    exit_code: int = 0
    changed: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)


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
        self._outcome = Outcome()
        self._stopping = threading.Event()
        self.writing = threading.Event()
        """While it is not set, results wait to be written."""
        self.writing.set()
        self._over = threading.Event()
        self._lock = threading.Lock()

    def run(self, verb: Verb) -> Outcome:
        """Run to the end, or until somebody kills or interrupts it."""
        threading.Thread(target=self._run, args=(verb,), daemon=True).start()
        if not self._over.wait(LONGEST_COMMAND_S):
            self._outcome.failures.append(f"{verb} was not over after {LONGEST_COMMAND_S:g} s")
            self._end(self.HANGS)
        return self._outcome

    def interrupt(self) -> None:
        """Take a SIGINT or SIGTERM: no new steps and a Cancel; the second one drops what is still under way."""
        if self._stopping.is_set():
            self._end(self.INTERRUPTED_TWICE)
        elif not self._over.is_set():
            self._stopping.set()
            self.provider.cancel()

    def kill(self) -> None:
        """Take a SIGKILL: results are lost, the provider lives on."""
        if self._end(self.KILLED):
            self.provider.vanish()

    def _end(self, code: int) -> bool:
        """End with a code unless it is over, and tell whether it did."""
        with self._lock:  # As results are written: what is dead writes nothing any more.
            if self._over.is_set():
                return False
            self._outcome.exit_code = code
            self._over.set()
            return True

    def _run(self, verb: Verb) -> None:
        known = self.state.resources
        try:
            if self._refresh:
                self._each(list(known.values()), self._look)
            for level in self._program if verb is Verb.UP else reversed(self._program):
                if verb is Verb.UP:
                    self._each(level, self._step)
                else:
                    self._each([each for each in level if each.name in known], self._delete)
        except Dropped:
            return
        self._end(1 if self._outcome.failures or self._stopping.is_set() else 0)

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
            found = self.provider.diff(old, inputs) if old else None
        except Failed as failed:
            self._fail(declared.name, failed)
            return
        if old is None:
            self._create(declared, inputs)
        elif found.replaces:
            self._delete(declared)
            if declared.name not in self.state.resources:
                self._create(declared, inputs)
        elif old.init_errors or found.changes == found.DIFF_SOME:
            self._carry_out("update", old.name, lambda: self.provider.update(old, inputs))

    def _create(self, declared: Declared, inputs: dict) -> None:
        self._carry_out("create", declared.name, lambda: self.provider.create(declared.kind, declared.name, inputs))

    def _delete(self, declared: Declared) -> None:
        old = self.state.resources[declared.name]
        self._carry_out("delete", declared.name, lambda: self.provider.delete(old))

    def _carry_out(self, what: str, name: str, act: Callable[[], Resource | None]) -> None:
        """Take a step and write down what became of it."""
        try:
            made = act()
        except Failed as failed:
            self._fail(name, failed)
            if left := failed.unfinished:
                old = self.state.resources.get(name)
                self._write(name, replace(left, inputs=old.inputs) if old else left)
            return
        self._outcome.changed.append(f"{what} {name}")
        self._write(name, made)

    def _look(self, old: Resource) -> None:
        try:
            live = self.provider.read(old)
        except Failed as failed:
            live = failed.unfinished
            if live is None:
                self._fail(old.name, failed)
                return
        self._write(old.name, live)

    def _write(self, name: str, resource: Resource | None) -> None:
        self.writing.wait()
        with self._lock:
            if self._over.is_set():
                raise Dropped
            self.state.write(name, resource)

    def _fail(self, name: str, failed: Failed) -> None:
        self._outcome.failures.append(f"{name}: {failed}")
