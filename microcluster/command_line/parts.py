"""Commands and their parts: errors as sentences with exit codes, and what is printed last."""

import json
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from typing import Any

from microcluster.accounts.shared.errors import AccountError, CallError, ProviderError
from microcluster.accounts.shared.key_file import CredentialsError
from microcluster.accounts.shared.redaction import redacted, without_secrets
from microcluster.config.stack import ConfigError
from microcluster.core.home import Home, KeysError
from microcluster.core.plain_text import note, one_line, say
from microcluster.core.polling import NotReadyError
from microcluster.jobs.cluster_facts import ClusterFactsError
from microcluster.lifecycle import renamed
from microcluster.remote.errors import CommandError, LoginRefusedError, RemoteError, UnreachableError
from microcluster.setup.errors import FAILED, INTERRUPTED, MISTAKE, UNKNOWN, CommandFailed, UserMistake, of_the_system
from microcluster.setup.secret_env import kept

AGAIN = "Run the same command again."
ENDS: tuple[tuple[type[Exception], int, str], ...] = (
    (UserMistake, MISTAKE, ""),
    (ConfigError, MISTAKE, ""),
    (KeysError, FAILED, ""),
    (
        UnreachableError,
        UNKNOWN,
        "Check that the machine is up and that adminCidrs contains this computer's address, then run the same command again.",
    ),
    (LoginRefusedError, UNKNOWN, "Check that nobody has changed the keys there, then run the same command again."),
    (CommandError, FAILED, f"\n{AGAIN} If that does not help, look at the machine: fab ssh"),
    (NotReadyError, FAILED, AGAIN),
    (CommandFailed, FAILED, ""),
    (RemoteError, FAILED, ""),
    (ClusterFactsError, FAILED, ""),
    (AccountError, UNKNOWN, ""),
    (CredentialsError, UNKNOWN, ""),
    (CallError, UNKNOWN, ""),
    (ProviderError, FAILED, ""),
)
"""The errors whose texts are full sentences, with their exit codes and what to do next; the first that fits counts."""
SENTENCES = tuple(kind for kind, _, _ in ENDS)
REMOTE_GOES_ON, STEPS_ARE_KEPT = "commands on the machines may still run", "finished steps are kept"
"""Remains of an interrupted command."""
COMMAND: ContextVar[str] = ContextVar("command", default="fab")
"""The command that a person called, as it is typed."""
_IS_PART: ContextVar[bool] = ContextVar("is_part", default=False)


def exit_code(function: Callable[..., int | None], interrupted: str = REMOTE_GOES_ON, **options: Any) -> int:
    """Run a function, print its error, and return the exit code.

    Args:
        interrupted: what Ctrl-C leaves.
    """
    try:
        # A full disk keeps no command from what it does with the names that are known.
        with suppress(OSError, CommandFailed):
            renamed.settle(Home.of(), options.get("stack"))
        return function(**options) or 0
    except KeyboardInterrupt as pressed:
        note(f"\nInterrupted; {str(pressed) or interrupted}. To continue, run the same command again.")
        return INTERRUPTED
    except BrokenPipeError:
        sys.stdout = None  # type: ignore[assignment] - the reader has gone, and Python would print an error at exit
        return FAILED
    except Exception as error:  # noqa: BLE001 - the outermost handler: a traceback does not help a user
        text, code = _end_of(error, COMMAND.get())
        note(text)
        return code


def run_part(function: Callable[..., int | None], **options: Any) -> int:
    """Run a function as a part of a command, which prints what to do next; return its exit code.

    Raises:
        KeyboardInterrupt: the part was interrupted.
    """
    before = _IS_PART.set(True)
    try:
        code = exit_code(function, **options)
    finally:
        _IS_PART.reset(before)
    if code == INTERRUPTED:
        raise KeyboardInterrupt
    return code


def is_part() -> bool:
    """Return whether a command runs this one as a part."""
    return _IS_PART.get()


def suggest(text: str) -> None:
    """Print the next command, unless a part runs."""
    if not is_part():
        say(f"Next: {text}")


def print_json(facts: object, default: Callable[[Any], object] = str) -> None:
    """Print ``facts`` as JSON, control characters escaped; piece by piece, since as one text they may take 100 MB.

    Args:
        default: what to print of a value that JSON does not have: of money and times their text.
    """
    for piece in json.JSONEncoder(indent=2, sort_keys=True, default=default).iterencode(facts):
        print(piece.replace("\x7f", "\\u007f"), end="")
    print()


def agrees(question: str) -> bool:
    """Ask once before something that cannot be undone; the end of the input means no."""
    try:
        return input(f"{one_line(question)} Type yes to go on: ").strip().lower() == "yes"
    except EOFError:
        say("")
        return False


def sentence(text: str) -> str:
    """Return ``text`` with a capital letter."""
    return text[:1].upper() + text[1:]


def _end_of(error: Exception, command: str) -> tuple[str, int]:
    """Return the sentence for an error, and the exit code."""
    for kind, code, next_step in ENDS:
        if isinstance(error, kind):
            return f"{sentence(str(error))} {next_step}".rstrip(), code
    if isinstance(error, ImportError):  # `make down` takes .venv as it is; it may be of an older version.
        return f".venv does not fit ({error}). `make setup` renews it, then run the same command again.", FAILED
    if isinstance(error, OSError):  # A full disk, a folder that may not be written to.
        return f"{command}: {of_the_system(error)}. Fix that, then run the same command again.", FAILED
    return unforeseen(command, error), FAILED


def unforeseen(command: str, error: Exception) -> str:
    """Write the traceback of ``error`` to a file, and return the message.

    Args:
        command: as it is typed, for example ``fab recover``.
    """
    path = Home.of().logs / f"{command.replace(' ', '-')}-error.log"
    record = f"the file {path}"
    text = without_secrets("".join(traceback.format_exception(error)), *kept().values())
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.write_text(text, encoding="utf-8", errors="backslashreplace")
    except OSError as unwritable:
        record = f"this message (the traceback could not be written: {of_the_system(unwritable)})"
    what = redacted(f"{type(error).__name__}: {error}", *kept().values())
    return (
        f"{command}: {what}. This is a mistake in the program, not yours. Rented machines stay and cost money: "
        f"`fab receipt` lists them. Report the mistake with {record}."
    )
