"""The account's records as they were some time ago, for lists that lag behind."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from emulator.settings import LONGEST_LAG_S
from emulator.store import Change, Store
from emulator.table import Table

ALWAYS = float("-inf")


@dataclass
class _Version:
    """A record as it was from a moment on; without a body it was not there."""

    since: float
    body: bytes | None
    record: Any = None  # decoded when it is first read


class RecordVersions:
    """Every version of a record that a lagging list may still show."""

    def __init__(self, store: Store, now: Callable[[], float]) -> None:
        self._store, self._now = store, now
        self._versions: dict[str, dict[int, list[_Version]]] = {kind: {} for kind in store.KINDS}
        for each in store.written():
            self._versions[each.kind][each.id] = [_Version(ALWAYS, each.after)]
        store.watchers.append(self._changed)

    def created_at(self, number: int) -> float | None:
        """When the object with this id was created; None when that is long ago or it never was."""
        for versions in self._versions.values():
            if number in versions:
                first = versions[number][0].since
                return None if first == ALWAYS else first
        return None

    def tables_at(self, moment: float) -> dict[str, Table[Any]]:
        """The tables as they were at a moment, for reading."""
        tables: dict[str, Table[Any]] = {}
        for kind, records in self._versions.items():
            tables[kind] = Table()
            for number, versions in records.items():
                shown = next((each for each in reversed(versions) if each.since <= moment), None)
                if shown and shown.body is not None:
                    shown.record = shown.record or self._store.decode(kind, shown.body)
                    tables[kind].restore(number, shown.record)
        return tables

    def _changed(self, changes: list[Change]) -> None:
        """Keep what was written, and drop what no list shows any more."""
        now = self._now()
        for change in changes:
            versions = self._versions[change.kind].setdefault(change.id, [])
            versions.append(_Version(now, change.after))
            while len(versions) > 1 and versions[1].since <= now - LONGEST_LAG_S:
                del versions[0]
