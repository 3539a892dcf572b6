"""The one error that set-up shows to a person."""

from __future__ import annotations

FAILED = 1
MISTAKE = 2
INTERRUPTED = 130


def of_the_system(error: OSError) -> str:
    """Return what the system says, with the file that it says it of."""
    where = f"{error.filename}: " if error.filename else ""
    return f"{where}{error.strerror or error}"


class SetupError(Exception):
    """A full sentence: what was being done, what happened, what to do next."""

    def __init__(self, message: str, exit_code: int = FAILED) -> None:
        super().__init__(message)
        self.exit_code = exit_code
