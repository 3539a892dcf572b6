"""How the account's records were some time ago, for lists that lag behind."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from emulator.settings import KEPT_S
from emulator.softlayer.account import Account
from emulator.softlayer.records import KINDS
from emulator.softlayer.store import Change, decode
from emulator.table import Table


@dataclass
class _Version:
    """A record as it was from a moment on; None where it was not there."""

    since: float
    kind: str
    body: bytes | None
    record: Any = field(default=None, init=False)

    def read(self) -> Any:
        """The record, decoded when it is first asked for."""
        if self.record is None and self.body is not None:
            self.record = decode(self.kind, self.body)
        return self.record


class _Past:
    """Tables that nobody writes to."""


class Timeline:
    """Every version of a record that a lagging list may still show."""

    def __init__(self, now: Callable[[], float], records: list[Change]) -> None:
        self._now = now
        self._versions: dict[str, dict[int, list[_Version]]] = {kind: {} for kind in KINDS}
        for each in records:
            self._versions[each.kind][each.id] = [_Version(float("-inf"), each.kind, each.after)]

    def changed(self, changes: list[Change]) -> None:
        """Remember what was written, and forget what no list shows any more."""
        now = self._now()
        for change in changes:
            versions = self._versions[change.kind].setdefault(change.id, [])
            versions.append(_Version(now, change.kind, change.after))
            while len(versions) > 1 and versions[1].since <= now - KEPT_S:
                del versions[0]

    def born(self, number: int) -> float | None:
        """When the object of this id came into being; None when that is long ago or never was."""
        for versions in self._versions.values():
            if number in versions:
                first = versions[number][0].since
                return None if first == float("-inf") else first
        return None

    def account_at(self, account: Account, moment: float) -> Account:
        """The account with its records as they were at a moment; everything else, its clock too, is today's."""
        past: Any = _Past()
        past.facts = account.store.facts
        for kind, things in self._versions.items():
            table: Table[Any] = Table()
            for number, versions in things.items():
                shown = next((each for each in reversed(versions) if each.since <= moment), None)
                if shown and (record := shown.read()) is not None:
                    table.restore(number, record)
            setattr(past, kind, table)
        seen = copy.copy(account)
        seen.store = past
        return seen
