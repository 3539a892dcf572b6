"""Records of one kind by id; those that were handed out are dirty, because only they can have changed."""

from collections.abc import Iterator, MutableMapping, ValuesView
from typing import TypeVar

Record = TypeVar("Record")


class Table(MutableMapping[int, Record]):
    """A mapping; a write to disk compares only its ``dirty`` ids."""

    def __init__(self) -> None:
        self._records: dict[int, Record] = {}
        self._living: dict[int, None] = {}  # in the order in which they came
        self.dirty: set[int] = set()

    def read_all(self) -> ValuesView[Record]:
        """Every record, for reading only: changes of these are not written."""
        return self._records.values()

    def read(self, number: int) -> Record | None:
        """One record, for reading only."""
        return self._records.get(number)

    def living(self) -> list[Record]:
        """The records that are not retired, for reading only."""
        return [self._records[number] for number in self._living]

    def retire(self, number: int) -> None:
        """Take a record out of ``living``; it stays readable."""
        self._living.pop(number, None)

    def restore(self, number: int, record: Record | None) -> None:
        """Set one record to an earlier state; None removes it."""
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
