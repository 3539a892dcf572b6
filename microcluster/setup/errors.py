"""The error of set-up, and the exit codes."""

FAILED = 1
MISTAKE = 2
INTERRUPTED = 130


def of_the_system(error: OSError) -> str:
    """Return the system's message with its file."""
    where = f"{error.filename}: " if error.filename else ""
    return f"{where}{error.strerror or error}"


class SetupError(Exception):
    """A full sentence with the next command."""

    def __init__(self, message: str, exit_code: int = FAILED) -> None:
        super().__init__(message)
        self.exit_code = exit_code
