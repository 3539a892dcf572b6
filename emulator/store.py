"""The account's memory: every record by kind and id, written to one SQLite file after each change."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from .records import KINDS, BillingItem, Guest, Order, SecurityGroup, SshKey, Vlan

DATABASE_FILE = "account.sqlite"
FIRST_ID = 1001
_ADAPTERS: dict[str, TypeAdapter[Any]] = {kind: TypeAdapter(record) for kind, record in KINDS.items()}


class Store:
    """Records in memory, mirrored on disk: ``flush`` writes what differs from the last time, in one transaction."""

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
        self.guests: dict[int, Guest] = {}
        self.billing_items: dict[int, BillingItem] = {}
        self.orders: dict[int, Order] = {}
        self.ssh_keys: dict[int, SshKey] = {}
        self.security_groups: dict[int, SecurityGroup] = {}
        self.vlans: dict[int, Vlan] = {}
        self._written: dict[tuple[str, int], bytes] = {}
        self._written_facts = dict(self.facts)
        self._load()

    def next_id(self) -> int:
        """An id that no object of the account has had."""
        number = int(self.facts.get("next_id", FIRST_ID))
        self.facts["next_id"] = str(number + 1)
        return number

    def flush(self) -> bool:
        """Write every change to disk; tell whether there was one."""
        bodies = {
            (kind, number): _ADAPTERS[kind].dump_json(record)
            for kind in KINDS
            for number, record in getattr(self, kind).items()
        }
        changed = [(*key, body) for key, body in bodies.items() if self._written.get(key) != body]
        removed = [key for key in self._written if key not in bodies]
        facts = [(name, value) for name, value in self.facts.items() if self._written_facts.get(name) != value]
        if not (changed or removed or facts):
            return False
        with self._database:
            self._database.executemany("insert or replace into records values (?, ?, ?)", changed)
            self._database.executemany("delete from records where kind = ? and id = ?", removed)
            self._database.executemany("insert or replace into facts values (?, ?)", facts)
        self._written = bodies
        self._written_facts = dict(self.facts)
        return True

    def rollback(self) -> None:
        """Forget every change since the last flush: a refused call changes nothing."""
        self.facts = dict(self._written_facts)
        for kind in KINDS:
            getattr(self, kind).clear()
        for (kind, number), body in self._written.items():
            getattr(self, kind)[number] = _ADAPTERS[kind].validate_json(body)

    def close(self) -> None:
        """Write what is left and close the file."""
        self.flush()
        self._database.close()

    def _load(self) -> None:
        for kind, number, body in self._database.execute("select kind, id, body from records"):
            getattr(self, kind)[number] = _ADAPTERS[kind].validate_json(body)
            self._written[kind, number] = bytes(body)
