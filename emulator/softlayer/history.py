"""What happened in the account, line by line in STATE/history.jsonl: every call with its outcome, every event."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from emulator.softlayer.account import Account
from emulator.softlayer.billing import per_hour
from emulator.softlayer.calls import Call
from emulator.softlayer.events import events_of
from emulator.softlayer.fault_key import about
from emulator.softlayer.faults import Fault
from emulator.softlayer.records import BillingItem
from emulator.softlayer.store import Change, decode

HISTORY_FILE = "history.jsonl"


class History:
    """Writes while the account's lock is held, so that the lines stand in the order in which things happened."""

    def __init__(self, account: Account, path: Path) -> None:
        self._account = account
        self._calls = _calls_in(path)
        self._file = path.open("a", buffering=1)

    def call(self, call: Call, outcome: Fault | None, weather: str | None = None) -> None:
        """Write down a call that was answered, or refused with a fault, or met the weather."""
        self._calls += 1
        self._write(
            {
                "kind": "call",
                "n": self._calls,
                "at": self._account.now,
                "service": call.service,
                "method": call.method,
                "id": None if call.identifier is None else str(call.identifier),
                "about": about(self._account, call),
                "outcome": "fault" if outcome else "ok",
                "code": outcome.code if outcome else None,
                "weather": weather,
            }
        )

    def changed(self, changes: list[Change]) -> None:
        """Write down what became of the account's things."""
        for change in changes:
            before = None if change.before is None else decode(change.kind, change.before)
            after = None if change.after is None else decode(change.kind, change.after)
            for event in events_of(change.kind, before, after):
                record = before if after is None else after
                self._write({"kind": "event", "at": self._account.now, **event, "id": change.id, **_facts(record)})

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _write(self, line: dict[str, Any]) -> None:
        self._file.write(json.dumps(line) + "\n")


def _facts(record: Any) -> dict[str, str | None]:
    hostname, domain = getattr(record, "hostname", None), getattr(record, "domain", None)
    notes = next(
        (text for name in ("notes", "label", "description", "name") if (text := getattr(record, name, None))), None
    )
    price = str(per_hour(record)) if isinstance(record, BillingItem) else None
    return {"host": hostname, "domain": domain, "per_hour": price, "notes": notes}


def _calls_in(path: Path) -> int:
    if not path.exists():
        return 0
    with path.open() as lines:
        return sum('"kind": "call"' in line for line in lines)
