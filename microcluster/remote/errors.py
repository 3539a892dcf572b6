"""Errors of a host and of the way to it, and the result of a command."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

TAIL_LINES, TAIL_CHARACTERS = 15, 4000


class RemoteError(Exception):
    """A host or the connection to it failed; the message is a full sentence with the next command."""


class UnreachableError(RemoteError):
    """No SSH server answered, or the connection was lost; trying again may help."""


class TooSlowError(UnreachableError):
    """The host answers, too slowly to be waited for."""


class LoginRefusedError(RemoteError):
    """The host is the right one and refused our key."""


@dataclass(frozen=True)
class Completed:
    """Result of a command that has ended."""

    exit_code: int
    stdout: str
    stderr: str


class CommandError(RemoteError):
    """A command ended with an exit code that its caller did not expect."""

    def __init__(self, host: str, argv: Sequence[str], completed: Completed) -> None:
        # Secrets are sent on stdin only, so the output contains none.
        printed = (completed.stdout + completed.stderr).strip().splitlines()
        tail = "\n".join(f"  {line}" for line in printed[-TAIL_LINES:])[-TAIL_CHARACTERS:]  # Its words, not ours.
        super().__init__(f"running `{shown(argv)}` on {host}: exit code {completed.exit_code}.\n{tail}".rstrip())


def shown(argv: Sequence[str]) -> str:
    """Return the beginning of a command for a message."""
    return shlex.join(argv).split("\n")[0][:200]
