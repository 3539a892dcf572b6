"""Endings of a command: two errors whose text is a full sentence with the next command, and the exit codes."""

FAILED, MISTAKE, UNKNOWN, INTERRUPTED = 1, 2, 3, 130
"""Unknown: an account, a right or a machine could not be read, so that nothing is proven."""


class CommandFailed(Exception):
    """The command failed; the message is a full sentence with the next command."""

    exit_code = FAILED


class UserMistake(CommandFailed):
    """The command line, a file or a stack is wrong; the message is a full sentence with the next command."""

    exit_code = MISTAKE


def of_the_system(error: OSError) -> str:
    """Return the system's message with its file."""
    where = f"{error.filename}: " if error.filename else ""
    return f"{where}{error.strerror or error}"
