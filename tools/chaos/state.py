"""What the engine knows: resources with what was asked and what came, intents before each step; on disk as one file."""

import dataclasses
import json
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


class StateError(Exception):
    """The state file cannot be read."""


@dataclass(frozen=True)
class Resource:
    """A resource as the state holds it."""

    kind: str
    name: str
    id: str
    inputs: dict[str, Any]
    outputs: dict[str, Any]
    init_errors: list[str] = field(default_factory=list)


class State:
    """Written twice for each step: the intent before it, the result after it; beside it lies the write before."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.resources: dict[str, Resource] = {}
        self.pending: list[tuple[str, str]] = []
        self._lock = threading.RLock()

    @property
    def backup(self) -> Path:
        """The write before the last."""
        return self.path.with_suffix(".json.bak")

    @classmethod
    def load(cls, path: Path) -> "State":
        """Read the file; one that was never written is an empty state, a torn one is refused."""
        state = cls(path)
        if not path.exists():
            return state
        try:
            written = json.loads(path.read_text())
            state.resources = {each["name"]: Resource(**each) for each in written["resources"]}
            state.pending = [tuple(each) for each in written["pending"]]
        except (ValueError, KeyError, TypeError) as broken:
            raise StateError(f"reading {path.name}: {broken}. Run recover.") from broken
        return state

    def intend(self, operation: str, name: str) -> None:
        """Write down that a step begins."""
        with self._lock:
            self.pending.append((operation, name))
            self._save()

    def settle(self, operation: str, name: str) -> None:
        """Write down that a step is over and changed nothing."""
        with self._lock:
            self._drop(operation, name)
            self._save()

    def record(self, operation: str, resource: Resource) -> None:
        """Write down what a step made."""
        with self._lock:
            self._drop(operation, resource.name)
            self.resources[resource.name] = resource
            self._save()

    def forget(self, operation: str, name: str) -> None:
        """Write down that a resource is gone."""
        with self._lock:
            self._drop(operation, name)
            self.resources.pop(name, None)
            self._save()

    def _drop(self, operation: str, name: str) -> None:
        if (operation, name) in self.pending:
            self.pending.remove((operation, name))

    def _save(self) -> None:
        content = {"resources": [dataclasses.asdict(each) for each in self.resources.values()], "pending": self.pending}
        if self.path.exists():
            self.path.replace(self.backup)
        self.path.write_text(json.dumps(content))
