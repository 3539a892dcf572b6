"""What the guards of a stack have found: each writes a record, and every other one reads it."""

import socket
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from core.files import write_whole
from microcluster.guard.decision import Begun, Verdict
from microcluster.guard.rental import Rental
from providers.rental.account import Extension


@dataclass(frozen=True)
class Record:
    """What a guard found when it looked last.

    Attributes:
        who: the guard: the command and its computer.
        told: the warnings that were given.
        trouble, since: what may not last for long, and since when it does.
    """

    who: str
    at: datetime
    verdict: Verdict
    rental: Rental | None = None
    extension: Extension = field(default_factory=Extension)
    begun: Begun | None = None
    told: tuple[str, ...] = ()
    trouble: str = ""
    since: datetime | None = None


RECORD = TypeAdapter(Record)


class Book:
    """The records of all guards of a stack, in a folder that they share: one file for each guard."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, record: Record) -> None:
        """Keep a guard's newest record."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_whole(self.folder / f"{record.who.replace('/', '_')}.json", RECORD.dump_json(record), 0o600)

    def forget(self) -> None:
        """Begin anew: what was found of an earlier rental says nothing of the next one."""
        for path in self.folder.glob("*.json"):
            path.unlink(missing_ok=True)

    def records(self) -> list[Record]:
        """Return what every guard found last, newest first; a file that cannot be read is passed over."""
        found = []
        for path in self.folder.glob("*.json"):
            with suppress(OSError, ValidationError):
                found.append(RECORD.validate_json(path.read_bytes()))
        return sorted(found, key=lambda each: each.at, reverse=True)

    def newest(self) -> Record | None:
        """Return what was found last by any guard."""
        return next(iter(self.records()), None)


def called(kind: str) -> str:
    """Name a guard, for example ``timer@laptop``."""
    return f"{kind}@{socket.gethostname()}"
