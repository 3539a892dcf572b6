"""The history in STATE/history.jsonl: one line for every call and for every event."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from emulator.account import EmulatedAccount
from emulator.store import Change

HISTORY_FILE = "history.jsonl"
Events = Callable[[str, Any, Any], Iterable[dict[str, Any]]]  # from a record's kind, and the record before and after


class History:
    """Writes while the account's lock is held, so that the lines are in the order of what happened."""

    def __init__(self, account: EmulatedAccount, path: Path, events: Events) -> None:
        self._account, self._events = account, events
        self._calls = _calls_in(path)
        self._file = path.open("a", buffering=1)
        account.store.watchers.append(self._changed)

    def call(self, **facts: Any) -> None:
        """Record a call and what became of it."""
        self._calls += 1
        self._write({"kind": "call", "n": self._calls, "at": self._account.now, **facts})

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _changed(self, changes: list[Change]) -> None:
        decode = self._account.store.decode
        for change in changes:
            before, after = (body and decode(change.kind, body) for body in (change.before, change.after))
            for event in self._events(change.kind, before, after):
                self._write({"kind": "event", "at": self._account.now, "id": change.id, **event})

    def _write(self, line: dict[str, Any]) -> None:
        self._file.write(json.dumps(line) + "\n")


def _calls_in(path: Path) -> int:
    if not path.exists():
        return 0
    with path.open() as lines:
        return sum('"kind": "call"' in line for line in lines)
