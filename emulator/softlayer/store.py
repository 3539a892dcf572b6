"""The account's memory: every record by kind and id, written to one SQLite file after each change."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from emulator.softlayer.records import KINDS, BillingItem, Guest, Order, SecurityGroup, SshKey, Vlan, Volume
from emulator.table import Table

DATABASE_FILE = "account.sqlite"
FIRST_ID = 1001
_ADAPTERS: dict[str, TypeAdapter[Any]] = {kind: TypeAdapter(record) for kind, record in KINDS.items()}


class StoreError(Exception):
    """The account's memory cannot be read; the message is a full sentence."""


@dataclass(frozen=True)
class Change:
    """One record before and after a write; None where it was not there."""

    kind: str
    id: int
    before: bytes | None
    after: bytes | None


class Store:
    """Records in memory, mirrored on disk: ``flush`` writes what differs from the last time, in one transaction."""

    guests: Table[Guest]
    billing_items: Table[BillingItem]
    orders: Table[Order]
    ssh_keys: Table[SshKey]
    security_groups: Table[SecurityGroup]
    vlans: Table[Vlan]
    volumes: Table[Volume]

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._database = sqlite3.connect(folder / DATABASE_FILE, check_same_thread=False)
        self._database.execute("pragma journal_mode=wal")
        self._database.execute("pragma synchronous=normal")
        self._database.execute("create table if not exists facts (name text primary key, value text)")
        self._database.execute(
            "create table if not exists records (kind text, id integer, body blob, primary key (kind, id))"
        )
        self.facts: dict[str, str] = dict(self._database.execute("select name, value from facts"))
        self.watchers: list[Callable[[list[Change]], None]] = []  # told what was written, in the order of the kinds
        self._tables: dict[str, Table[Any]] = {kind: Table() for kind in KINDS}
        for kind, table in self._tables.items():
            setattr(self, kind, table)
        self._written: dict[tuple[str, int], bytes] = {}
        self._written_facts = dict(self.facts)
        try:
            self._load()
        except (ValidationError, KeyError) as strange:
            raise StoreError(
                f"Reading {folder / DATABASE_FILE}: another version of the emulator wrote it. Its machines and bills are "
                "only play: put them away with python -m emulator reset, then start again."
            ) from strange

    def next_id(self) -> int:
        """An id that no object of the account has had."""
        number = int(self.facts.get("next_id", FIRST_ID))
        self.facts["next_id"] = str(number + 1)
        return number

    def flush(self) -> bool:
        """Write every change to disk; tell whether there was one."""
        compared = (
            self._change(kind, number) for kind, table in self._tables.items() for number in sorted(table.touched)
        )
        changes = [change for change in compared if change]
        facts = [(name, value) for name, value in self.facts.items() if self._written_facts.get(name) != value]
        if changes or facts:
            self._write(changes, facts)
        for change in changes:
            self._retire(change.kind, change.id)
        self.unmark()
        for watcher in self.watchers if changes else ():
            watcher(changes)
        return bool(changes or facts)

    def rollback(self) -> None:
        """Forget every change since the last flush: a refused call changes nothing."""
        self.facts = dict(self._written_facts)
        for kind, table in self._tables.items():
            for number in table.touched:
                body = self._written.get((kind, number))
                table.restore(number, None if body is None else decode(kind, body))
        self.unmark()

    def unmark(self) -> None:
        """Say that nothing that was handed out has been changed: the call only read."""
        for table in self._tables.values():
            table.touched.clear()

    def written(self) -> list[Change]:
        """Everything that is on disk, as if it had been written just now."""
        return [Change(kind, number, None, body) for (kind, number), body in self._written.items()]

    def close(self) -> None:
        """Write what is left and close the file."""
        self.flush()
        self._database.close()

    def _change(self, kind: str, number: int) -> Change | None:
        record = self._tables[kind].peek(number)
        before = self._written.get((kind, number))
        after = None if record is None else _ADAPTERS[kind].dump_json(record)
        return None if before == after else Change(kind, number, before, after)

    def _write(self, changes: list[Change], facts: list[tuple[str, str]]) -> None:
        changed = [(each.kind, each.id, each.after) for each in changes if each.after is not None]
        removed = [(each.kind, each.id) for each in changes if each.after is None]
        with self._database:
            self._database.executemany("insert or replace into records values (?, ?, ?)", changed)
            self._database.executemany("delete from records where kind = ? and id = ?", removed)
            self._database.executemany("insert or replace into facts values (?, ?)", facts)
        self._written |= {(kind, number): body for kind, number, body in changed}
        for key in removed:
            del self._written[key]
        self._written_facts |= dict(facts)

    def _load(self) -> None:
        for kind, number, body in self._database.execute("select kind, id, body from records"):
            self._tables[kind].restore(number, decode(kind, body))
            self._written[kind, number] = bytes(body)
            self._retire(kind, number)

    def _retire(self, kind: str, number: int) -> None:
        """Set what is closed apart: an account has ever more of it, and nothing happens to it any more."""
        table = self._tables[kind]
        if getattr(table.peek(number), "closed", None) is not None:
            table.retire(number)


def decode(kind: str, body: bytes) -> Any:
    """A record of its own as it was written."""
    return _ADAPTERS[kind].validate_json(body)
