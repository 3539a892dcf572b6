"""Records of the guards of a stack: each writes its own, and every other one reads it."""

import socket
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from pydantic import TypeAdapter

from microcluster.accounts.shared.account import Extension
from microcluster.core.files import write_whole
from microcluster.core.home import Home
from microcluster.core.plain_text import note
from microcluster.guard.decision import Begun, Limits, Trouble, Verdict
from microcluster.rental.last_reading import Reading, folder_of, readings


@dataclass(frozen=True)
class Record(Reading):
    """Newest finding of a guard.

    Attributes:
        told: the warnings that were given.
        unread: why the account could not be read.
        began: since when each trouble lasts.
        limits: those of the stack file, for when that cannot be read any more.
    """

    verdict: Verdict
    extension: Extension = field(default_factory=Extension)
    begun: Begun | None = None
    told: tuple[str, ...] = ()
    unread: str = ""
    began: Mapping[Trouble, datetime] = field(default_factory=dict)
    limits: Limits | None = None


RECORD = TypeAdapter(Record)


class GuardLog:
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
        """Remove all records: those of an earlier rental say nothing of the next one."""
        for path in self.folder.glob("*.json"):
            with suppress(OSError):
                path.unlink(missing_ok=True)

    def records(self) -> list[Record]:
        """Return what every guard found last, newest first; a file that cannot be read is passed over."""
        return readings(self.folder, RECORD)

    def newest(self) -> Record | None:
        """Return the newest record of any guard."""
        return next(iter(self.records()), None)


def log_of(stack: str, home: Home) -> GuardLog:
    """Return the records of the guards of a stack."""
    return GuardLog(folder_of(stack, home))


def called(kind: str) -> str:
    """Name a guard, for example ``timer@laptop``."""
    return f"{kind}@{socket.gethostname()}"
