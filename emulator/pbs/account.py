"""An emulated site: it rents nothing out, so that it has no records beside what every account has."""

from collections.abc import Mapping
from typing import ClassVar

from emulator.account import EmulatedAccount
from emulator.pbs.settings import Settings
from emulator.store import Store


class Records(Store):
    """No records: jobs and nodes are Slurm's."""

    KINDS: ClassVar[Mapping[str, type]] = {}
    RESET: ClassVar[str] = "python -m emulator reset pbs"


class Account(EmulatedAccount):
    """The site, and what was wrong with each of its machines when that was last looked at."""

    settings: Settings
    RECORDS = Records

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.machines: dict[int, str] = {}
