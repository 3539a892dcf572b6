"""Functions that a command runs as parts of itself: their errors are printed, and their exit codes returned."""

import json
import sys
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from typing import Any

from microcluster.command_line.errors import end_of
from microcluster.core.home import Home
from microcluster.core.plain_text import note, one_line, say
from microcluster.lifecycle import renamed
from microcluster.setup.errors import FAILED, INTERRUPTED, CommandFailed

REMOTE_GOES_ON, STEPS_ARE_KEPT = "commands on the machines may still run", "finished steps are kept"
"""What an interrupted command leaves."""
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
        text, code = end_of(error, COMMAND.get())
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


def print_json(facts: object) -> None:
    """Print ``facts`` as JSON; money and times as text, control characters escaped."""
    print(json.dumps(facts, indent=2, sort_keys=True, default=str).replace("\x7f", "\\u007f"))


def agrees(question: str) -> bool:
    """Ask once before something that cannot be undone; the end of the input means no."""
    try:
        return input(f"{one_line(question)} Type yes to go on: ").strip().lower() == "yes"
    except EOFError:
        say("")
        return False
