"""What all verbs share: exit codes, error messages without tracebacks, and Ctrl-C."""

import functools
import json
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

import invoke

from core.plain_text import note, one_line, say
from core.waiting import NotReadyError
from microcluster.config import ConfigError
from microcluster.jobs.cluster_facts import ClusterFactsError
from microcluster.remote.errors import RemoteError, UnreachableError
from microcluster.setup import unforeseen
from microcluster.setup.environment import PART_OF_MAKE
from microcluster.setup.errors import SetupError, of_the_system
from providers.rental.errors import ProviderError

FAILED, MISTAKE, INTERRUPTED = 1, 2, 130
STACK = "local"
REPEATED = ("id", "runs")
"""Options that may be given several times."""
UNREACHABLE_NEXT = "Check that the machine is up and that adminCidrs contains this computer's address, then run the same command again."


class UserMistake(Exception):
    """The command line, a file or a stack is wrong; the message is a full sentence with the next command."""


class VerbError(Exception):
    """The verb failed; the message is a full sentence with the next command."""


MISTAKES = (UserMistake, ConfigError, SetupError)
FORESEEN = (VerbError, RemoteError, NotReadyError, ClusterFactsError, ProviderError)
"""Their texts are full sentences."""


def verb(function: Callable[..., int | None]) -> invoke.Task:
    """Make a Fabric task of ``function``, which returns the exit code; its errors are printed as sentences."""

    @functools.wraps(function)
    def run(*args: Any, **options: Any) -> None:
        sys.exit(_exit_code(function, *args, **options))

    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    positional, repeated = ([name for name in known if name in names] for known in (("node", "file"), REPEATED))
    return invoke.task(run, positional=positional, iterable=repeated, help=_help(function))


def each_with_its_option(words: Sequence[str], option: str) -> list[str]:
    """Put ``option`` before every word that follows it, as in ``--runs A B``, which Fabric would take for a verb."""
    spread: list[str] = []
    inside = False
    for word in words:
        if word == option or word.startswith("-"):
            inside = word == option
            spread += [] if inside else [word]
        else:
            spread += [option, word] if inside else [word]
    return spread


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


def is_part_of_make() -> bool:
    """Return whether make runs this verb."""
    return bool(os.environ.get(PART_OF_MAKE))


def suggest(text: str) -> None:
    """Print the next command, unless make prints it."""
    if not is_part_of_make():
        say(f"Next: {text}")


def _exit_code(function: Callable[..., int | None], *args: Any, **options: Any) -> int:
    try:
        return function(*args, **options) or 0
    except KeyboardInterrupt as pressed:
        running = str(pressed) or "commands on the machines may still run"
        note(f"\nInterrupted; {running}. To continue, run the same command again.")
        return INTERRUPTED
    except BrokenPipeError:
        sys.stdout = None  # type: ignore[assignment] - the reader has gone, and Python would print an error at exit
        return FAILED
    except Exception as error:  # noqa: BLE001 - the outermost handler: a traceback does not help a user
        note(_message(error, _command(function)))
        return getattr(error, "exit_code", MISTAKE) if isinstance(error, MISTAKES) else FAILED


def _message(error: Exception, command: str) -> str:
    if isinstance(error, MISTAKES):
        return str(error)
    if isinstance(error, UnreachableError):
        return f"{sentence(str(error))} {UNREACHABLE_NEXT}"
    if isinstance(error, FORESEEN):
        return sentence(str(error))
    if isinstance(error, OSError):  # A full disk, a folder that may not be written to.
        return f"{command}: {of_the_system(error)}. Fix that, then run the same command again."
    return unforeseen.sentence(command, error)


def _command(function: Callable[..., int | None]) -> str:
    return f"fab {function.__name__.replace('_', '-')}"


def sentence(text: str) -> str:
    """Return ``text`` with a capital letter."""
    return text[:1].upper() + text[1:]


def _help(function: Callable[..., int | None]) -> dict[str, str]:
    known = {
        "stack": "NAME of stacks/Pulumi.NAME.yaml; default: local",
        "json": "print JSON",
        "node": "name of the machine, for example gpu-0",
        "lines": "number of last lines to print",
        "port": "port on this computer",
        "file": "text file on this computer, one sentence a line",
        "reference": "text file with correct translations, to compute a score",
        "model": "folder of a fetched run; default: the stack's own run",
        "yes": "do not ask",
        "unfetched": "only list what is not fetched yet, of every run on the machines",
        "everything": "also large files that nobody has named, and earlier runs on the machines",
        "all": "show all rentals, not only the last one",
        "cancel": "cancel everything with the stack's mark instead of keeping it for the next up",
        "mark": "cancel everything with this mark",
        "runs": "compare these runs instead: two or more names, or how they begin",
        "id": "cancel this id of the list; may be given several times",
        "preflight": "show every preflight check",
        "follow": "keep printing until the job ends",
    }
    names = function.__code__.co_varnames[1 : function.__code__.co_argcount]
    return {name: known[name] for name in names if name in known}
