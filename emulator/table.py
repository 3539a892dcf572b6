"""Records of one kind by id; it remembers which ones it has handed out, for no others can have changed."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, ValuesView
from typing import TypeVar

Record = TypeVar("Record")


class Table(MutableMapping[int, Record]):
    """A mapping whose ``dirty`` ids are all that a write to disk has to compare."""

    def __init__(self) -> None:
        self._records: dict[int, Record] = {}
        self._living: dict[int, None] = {}  # in the order in which they came
        self.dirty: set[int] = set()

    def read_all(self) -> ValuesView[Record]:
        """Every record, for a caller who only reads: whatever is changed on these is not written."""
        return self._records.values()

    def read(self, number: int) -> Record | None:
        """One record, for a caller who only reads."""
        return self._records.get(number)

    def living(self) -> list[Record]:
        """The records that were not retired, for a caller who only reads."""
        return [self._records[number] for number in self._living]

    def retire(self, number: int) -> None:
        """Say that a record is over for good; it stays readable."""
        self._living.pop(number, None)

    def restore(self, number: int, record: Record | None) -> None:
        """Put one record back as it was, or take away one that was not there."""
        if record is None:
            self._records.pop(number, None)
            self._living.pop(number, None)
        else:
            self._records[number] = record
            self._living.setdefault(number)

    def __getitem__(self, number: int) -> Record:
        record = self._records[number]
        self.dirty.add(number)
        return record

    def __setitem__(self, number: int, record: Record) -> None:
        self.dirty.add(number)
        self._records[number] = record
        self._living.setdefault(number)

    def __delitem__(self, number: int) -> None:
        self.dirty.add(number)
        del self._records[number]
        self._living.pop(number, None)

    def __contains__(self, number: object) -> bool:
        return number in self._records

    def __iter__(self) -> Iterator[int]:
        return iter(self._records)

    def __len__(self) -> int:
        return len(self._records)
