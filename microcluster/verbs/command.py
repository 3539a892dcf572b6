"""What all verbs share: exit codes, one sentence instead of a traceback, and a tidy end on Ctrl-C."""

from __future__ import annotations

import functools
import json
import os
import sys
from collections.abc import Callable
from typing import Any

import invoke

from microcluster.config import ConfigError
from microcluster.jobs.cluster_facts import ClusterFactsError
from microcluster.plain_text import note, one_line, say
from microcluster.remote.errors import RemoteError, UnreachableError
from microcluster.setup import unforeseen
from microcluster.setup.environment import PART_OF_MAKE
from microcluster.setup.errors import SetupError, of_the_system
from microcluster.waiting import NotReadyError
from providers.rental.errors import ProviderError

FAILED, MISTAKE, INTERRUPTED = 1, 2, 130
STACK = "local"
UNREACHABLE_NEXT = "See that the machine is up and that adminCidrs holds this computer's address, then repeat."


class UserMistake(Exception):
    """What was asked for cannot be; the message is a full sentence with the next command."""


class VerbError(Exception):
    """The verb failed; the message is a full sentence with the next command."""


MISTAKES = (UserMistake, ConfigError, SetupError)
FORESEEN = (VerbError, RemoteError, NotReadyError, ClusterFactsError, ProviderError)
"""Their texts are full sentences."""


def verb(function: Callable[..., int | None]) -> invoke.Task:
    """Make a task of ``function``; what it returns is the exit code, and every error of ours becomes a sentence."""

    @functools.wraps(function)
    def framed(*args: Any, **options: Any) -> None:
        sys.exit(_carefully(function, *args, **options))

    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    positional, repeated = ([name for name in known if name in names] for known in (("node", "file"), ("id",)))
    return invoke.task(framed, positional=positional, iterable=repeated, help=_help(function))


def print_json(facts: object) -> None:
    """Print facts for a program; money and times as text, control characters escaped as JSON does."""
    print(json.dumps(facts, indent=2, sort_keys=True, default=str).replace("\x7f", "\\u007f"))


def agrees(question: str) -> bool:
    """Ask the person once, before something that cannot be undone; nobody at the keyboard is a no."""
    try:
        return input(f"{one_line(question)} Only then answer yes: ").strip().lower() == "yes"
    except EOFError:
        say("")
        return False


def is_part_of_make() -> bool:
    """Return whether make runs this verb as a part of what it does."""
    return bool(os.environ.get(PART_OF_MAKE))


def suggest(text: str) -> None:
    """Say what to do next, unless make says it."""
    if not is_part_of_make():
        say(f"Next: {text}")


def _carefully(function: Callable[..., int | None], *args: Any, **options: Any) -> int:
    try:
        return function(*args, **options) or 0
    except KeyboardInterrupt as pressed:
        going_on = str(pressed) or "what was begun on the machines may still go on"
        note(f"\nInterrupted; {going_on}. The same command again takes it up.")
        return INTERRUPTED
    except BrokenPipeError:
        sys.stdout = None  # type: ignore[assignment] - nobody reads any more, and Python would complain about it
        return FAILED
    except Exception as error:  # noqa: BLE001 - the last edge: a traceback helps nobody while money is running
        note(_told(error, _command(function)))
        return getattr(error, "exit_code", MISTAKE) if isinstance(error, MISTAKES) else FAILED


def _told(error: Exception, command: str) -> str:
    if isinstance(error, MISTAKES):
        return str(error)
    if isinstance(error, UnreachableError):
        return f"{sentence(str(error))} {UNREACHABLE_NEXT}"
    if isinstance(error, FORESEEN):
        return sentence(str(error))
    if isinstance(error, OSError):  # A full disk, a folder that may not be written to.
        return f"{command}: {of_the_system(error)}. Fix that, then repeat the same command."
    return unforeseen.sentence(command, error)


def _command(function: Callable[..., int | None]) -> str:
    return f"fab {function.__name__.replace('_', '-')}"


def sentence(text: str) -> str:
    """Return ``text`` with a capital letter."""
    return text[:1].upper() + text[1:]


def _help(function: Callable[..., int | None]) -> dict[str, str]:
    known = {
        "stack": "name of a stack file, as in stacks/Pulumi.NAME.yaml; local when left out",
        "json": "print the facts for a program",
        "node": "name of the machine, for example gpu-0",
        "lines": "how many lines of the end",
        "port": "port of this computer to open",
        "file": "text of this computer, one sentence a line",
        "reference": "text with the right translations, to be scored against",
        "model": "folder of a run that was fetched; the stack's own run when left out",
        "yes": "do not ask",
        "all": "the whole history and not only the last rental",
        "cancel": "cancel what bears the mark instead of keeping it for the next up",
        "mark": "all that carries this mark",
        "id": "what is to be cancelled, as the list names it; may be given several times",
        "preflight": "show every check that was made before the training",
        "follow": "go on printing until Ctrl-C",
    }
    names = function.__code__.co_varnames[1 : function.__code__.co_argcount]
    return {name: known[name] for name in names if name in known}
