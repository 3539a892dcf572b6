"""The account's records of every kind, by id: in memory, and in one SQLite file after each change."""

import json
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from pydantic import TypeAdapter, ValidationError

from emulator.table import Table

DATABASE_FILE = "account.sqlite"
FIRST_ID = 1001


class StoreError(Exception):
    """The account's database cannot be read; the message is a full sentence."""


@dataclass(frozen=True)
class Change:
    """One record before and after a write; None where it was not there."""

    kind: str
    id: int
    before: bytes | None
    after: bytes | None


class Store:
    """Records in memory and on disk: ``flush`` writes all changes in one transaction.

    A vendor's class names its ``KINDS``; the table of each is an attribute of that name.
    """

    KINDS: ClassVar[Mapping[str, type]]
    RESET: ClassVar[str] = "python -m emulator reset"
    RENAMED: ClassVar[Mapping[str, str]] = {}  # a field's name in older databases to its name now

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
        self.watchers: list[Callable[[list[Change]], None]] = []  # called with what was written, in the order of KINDS
        self.tables: dict[str, Table[Any]] = {kind: Table() for kind in self.KINDS}
        for kind, table in self.tables.items():
            setattr(self, kind, table)
        self._adapters: dict[str, TypeAdapter[Any]] = {kind: TypeAdapter(record) for kind, record in self.KINDS.items()}
        self._written: dict[tuple[str, int], bytes] = {}
        self._written_facts = dict(self.facts)
        try:
            self._load()
        except (ValidationError, KeyError) as unreadable:
            raise StoreError(
                f"Reading {folder / DATABASE_FILE}: another version of the emulator wrote it. Its machines and bills are "
                f"not real. Remove them with {self.RESET}, then start again."
            ) from unreadable

    def next_id(self) -> int:
        """An id that no object of the account has had."""
        number = int(self.facts.get("next_id", FIRST_ID))
        self.facts["next_id"] = str(number + 1)
        return number

    def flush(self) -> bool:
        """Write every change to disk; return whether there was one."""
        compared = (self._change(kind, number) for kind, table in self.tables.items() for number in sorted(table.dirty))
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
        """Undo every change since the last flush: a refused call changes nothing."""
        self.facts = dict(self._written_facts)
        for kind, table in self.tables.items():
            for number in table.dirty:
                body = self._written.get((kind, number))
                table.restore(number, None if body is None else self.decode(kind, body))
        self.unmark()

    def unmark(self) -> None:
        """Declare that no record has changed since the last flush: the call only read."""
        for table in self.tables.values():
            table.dirty.clear()

    def written(self) -> list[Change]:
        """Everything that is on disk, as changes from nothing."""
        return [Change(kind, number, None, body) for (kind, number), body in self._written.items()]

    def decode(self, kind: str, body: bytes) -> Any:
        """A new copy of a record as it was written."""
        return self._adapters[kind].validate_json(self._with_new_names(body))

    def close(self) -> None:
        """Write what is left and close the file."""
        self.flush()
        self._database.close()

    def _change(self, kind: str, number: int) -> Change | None:
        record = self.tables[kind].read(number)
        before = self._written.get((kind, number))
        after = None if record is None else self._adapters[kind].dump_json(record)
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
            self.tables[kind].restore(number, self.decode(kind, body))
            self._written[kind, number] = bytes(body)
            self._retire(kind, number)

    def _with_new_names(self, body: bytes) -> bytes:
        """A record's JSON under today's names; the next change of the record writes them."""
        if not any(f'"{old}":'.encode() in body for old in self.RENAMED):
            return body
        renamed = json.loads(body, object_hook=lambda each: {self.RENAMED.get(key, key): each[key] for key in each})
        return json.dumps(renamed).encode()

    def _retire(self, kind: str, number: int) -> None:
        """Take a closed record out of the live ones: their number only grows, and they do not change any more."""
        table = self.tables[kind]
        if getattr(table.read(number), "closed", None) is not None:
            table.retire(number)
