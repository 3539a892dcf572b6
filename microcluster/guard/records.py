"""Records of the guards of a stack: each writes its own, and every other one reads it."""

import socket
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from microcluster.accounts.registry import AccountSettings
from microcluster.accounts.shared.account import Extension
from microcluster.core.files import write_whole
from microcluster.core.plain_text import note
from microcluster.guard.decision import Begun, Limits, Trouble, Verdict
from microcluster.guard.rental import Rental


@dataclass(frozen=True)
class Record:
    """Newest finding of a guard.

    Attributes:
        who: the guard: the command and its computer.
        told: the warnings that were given.
        unread: why the account could not be read.
        began: since when each trouble lasts.
        limits: those of the stack file, for when that cannot be read any more.
        account, opens: the id of the account, and what opens it.
    """

    who: str
    at: datetime
    verdict: Verdict
    rental: Rental | None = None
    extension: Extension = field(default_factory=Extension)
    begun: Begun | None = None
    told: tuple[str, ...] = ()
    unread: str = ""
    began: Mapping[Trouble, datetime] = field(default_factory=dict)
    limits: Limits | None = None
    account: str = ""
    opens: AccountSettings | None = None

    @property
    def lives(self) -> bool:
        """Whether something was rented when it looked."""
        return self.verdict.step != "over" and self.rental is not None


RECORD = TypeAdapter(Record)


class Book:
    """The records of all guards of a stack, in a folder that they share: one file for each guard."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, record: Record) -> None:
        """Keep a guard's newest record, where there is room for it: no limit waits for that."""
        path = self.folder / f"{record.who.replace('/', '_')}.json"
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            write_whole(path, RECORD.dump_json(record), 0o600)
        except OSError as error:
            note(f"The guard's record cannot be kept in {path}: {error.strerror}. It goes on without.")

    def forget(self) -> None:
        """Begin anew: what was found of an earlier rental says nothing of the next one."""
        for path in self.folder.glob("*.json"):
            with suppress(OSError):
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
