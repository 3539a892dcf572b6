"""Newest reading of a stack's rental, by whichever of its guards wrote it down."""

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from microcluster.accounts.registry import AccountSettings
from microcluster.accounts.shared.rental import Rental
from microcluster.core.home import Home


@dataclass(frozen=True)
class Step:
    """Next step of a guard; ``over`` where nothing is rented any more."""

    step: str


@dataclass(frozen=True)
class Reading:
    """Rental of a stack as a guard read it.

    Attributes:
        who: the guard: the command and its computer.
        account, opens: the id of the account, and what opens it.
    """

    who: str
    at: datetime
    verdict: Step
    rental: Rental | None = None
    account: str = ""
    opens: AccountSettings | None = None

    @property
    def lives(self) -> bool:
        """Whether something was rented then."""
        return self.verdict.step != "over" and self.rental is not None


READING = TypeAdapter(Reading)
AnyReading = TypeVar("AnyReading", bound=Reading)


def folder_of(stack: str, home: Home) -> Path:
    """Return the folder of the guards' records: beside the stack's keys, which all who may act share."""
    return home.folder_of(stack) / "guards"


def readings(folder: Path, record: TypeAdapter[AnyReading]) -> list[AnyReading]:
    """Return what every guard wrote down last, newest first; a file that cannot be read is passed over."""
    found = []
    for path in folder.glob("*.json"):
        with suppress(OSError, ValidationError):
            found.append(record.validate_json(path.read_bytes()))
    return sorted(found, key=lambda each: each.at, reverse=True)


def last_reading(stack: str, home: Home) -> Reading | None:
    """Return what was written down last by any guard."""
    return next(iter(readings(folder_of(stack, home), READING)), None)
