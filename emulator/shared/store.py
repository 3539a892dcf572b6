"""The account's records of every kind, by id: in memory, in one SQLite file after each change, and as they were before."""

import sqlite3
from collections.abc import Callable, Iterator, Mapping, MutableMapping, ValuesView
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from pydantic import TypeAdapter, ValidationError

from emulator.shared.settings import LONGEST_LAG_S

DATABASE_FILE = "account.sqlite"
FIRST_ID = 1001
ALWAYS = float("-inf")
Record = TypeVar("Record")


class StoreError(Exception):
    """The account's database cannot be read; the message is a full sentence."""


@dataclass(frozen=True)
class Change:
    """One record before and after a write; None where it was not there."""

    kind: str
    id: int
    before: bytes | None
    after: bytes | None


class Table(MutableMapping[int, Record]):
    """Records of one kind by id; records that were handed out are dirty: only they can have changed."""

    def __init__(self) -> None:
        self._records: dict[int, Record] = {}
        self.dirty: set[int] = set()

    def read_all(self) -> ValuesView[Record]:
        """Every record, for reading only: changes of these are not written."""
        return self._records.values()

    def read(self, number: int) -> Record | None:
        """One record, for reading only."""
        return self._records.get(number)

    def living(self) -> list[Record]:
        """The records that were not closed, for reading only."""
        return [record for record in self._records.values() if getattr(record, "closed", None) is None]

    def restore(self, number: int, record: Record | None) -> None:
        """Set one record to an earlier state; None removes it."""
        if record is None:
            self._records.pop(number, None)
        else:
            self._records[number] = record

    def __getitem__(self, number: int) -> Record:
        record = self._records[number]
        self.dirty.add(number)
        return record

    def __setitem__(self, number: int, record: Record) -> None:
        self.dirty.add(number)
        self._records[number] = record

    def __delitem__(self, number: int) -> None:
        self.dirty.add(number)
        del self._records[number]

    def __contains__(self, number: object) -> bool:
        return number in self._records

    def __iter__(self) -> Iterator[int]:
        return iter(self._records)

    def __len__(self) -> int:
        return len(self._records)


class Store:
    """Records in memory and on disk: ``flush`` writes all changes in one transaction.

    A vendor's class names its ``KINDS``; the table of each is an attribute of that name.
    """

    KINDS: ClassVar[Mapping[str, type]]
    RESET: ClassVar[str] = "python -m emulator reset"

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
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
        return self._adapters[kind].validate_json(body)

    def close(self) -> None:
        """Write the unsaved changes and close the file."""
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


class RecordVersions:
    """The account's records as they were some time ago, for lists that lag behind."""

    def __init__(self, store: Store, now: Callable[[], float]) -> None:
        self._store = store
        self._versions: dict[str, dict[int, list[tuple[float, Any]]]] = {kind: {} for kind in store.KINDS}
        self._keep(ALWAYS, store.written())
        store.watchers.append(lambda changes: self._keep(now(), changes))

    def tables_at(self, moment: float) -> dict[str, Table[Any]]:
        """The tables as they were at a moment, for reading."""
        tables: dict[str, Table[Any]] = {}
        for kind, records in self._versions.items():
            tables[kind] = Table()
            for number, versions in records.items():
                shown = [record for since, record in versions if since <= moment]
                if shown:
                    tables[kind].restore(number, shown[-1])
        return tables

    def _keep(self, since: float, changes: list[Change]) -> None:
        """Keep what was written, None for what was removed, and drop what no list shows any more."""
        for change in changes:
            record = None if change.after is None else self._store.decode(change.kind, change.after)
            versions = self._versions[change.kind].setdefault(change.id, [])
            versions.append((since, record))
            while len(versions) > 1 and versions[1][0] <= since - LONGEST_LAG_S:
                del versions[0]
