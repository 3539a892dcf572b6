"""What all commands share: one table of errors and exit codes, the names of their options, and commands as parts of others."""

import functools
import inspect
import json
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import ContextVar
from typing import Any

import invoke

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

STACK = "local"
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
"""What an interrupted command leaves."""
PARAMETERS = {"json": "as_json", "all": "show_all", "id": "ids", "fetch": "fetch_first"}
"""The parameters of options whose names have another meaning in a function."""
OPTIONS = {parameter: option for option, parameter in PARAMETERS.items()}
SHORT = {"lines": "n"}
LISTS = {"compare": "--runs", "images": "--only"}
"""The commands that take a list of words, with the option that is before each."""
POSITIONAL, REPEATED = ("node", "file"), ("id", "runs", "only")
HELP = {
    "stack": "NAME of stacks/Pulumi.NAME.yaml; default: local",
    "json": "print JSON",
    "node": "name of the machine, for example gpu-0",
    "lines": "number of last lines to print",
    "port": "port on this computer",
    "container": "in the training container instead of on the machine",
    "checkpoint": "folder or file of a checkpoint on this computer, such as a published one",
    "file": "text file on this computer, one sentence a line",
    "reference": "text file with correct translations, to compute a score",
    "model": "folder of a fetched run; default: the stack's own run",
    "yes": "do not ask",
    "budget": "dollars that guard.budget would allow the whole rental",
    "live": "ask the stack's own account for its prices; it needs the account's key",
    "to_loss": "train to this validation loss instead of job.maxSteps",
    "link": "what the link between the machines carries, in Gb/s, where it is known",
    "deadline": "hours from now in which the run has to be over",
    "unfetched": "only list what is not fetched yet, of every run on the machines",
    "everything": "also older checkpoints, what was put aside, large files, and earlier runs on the machines",
    "all": "show all rentals, not only the last one",
    "cancel": "cancel everything with the stack's mark instead of keeping it for the next up",
    "mark": "the mark of what is meant, eight hex digits; fab guard takes up what another computer has ordered",
    "runs": "two or more runs, or how their names begin; the option itself may be left out",
    "id": "cancel this id of the list; may be given several times",
    "preflight": "show every preflight check",
    "follow": "keep printing until the job ends",
    "fetch": "where a run would be lost with its machines: fetch it first",
    "discard": "where a run would be lost with its machines: give it up",
    "down": "fetch and cancel everything when the job is over; after a failure in half an hour, or after guard.keepFailed",
    "install": "look every minute from now on, by systemd or cron",
    "remove": "stop looking every minute",
    "status": "show when each guard looked last, from where, and what it will do next",
    "hours": "hours more (of a queue: node hours)",
    "dollars": "dollars more",
    "only": "build these images instead of those of the local stack: one or more names",
}
AGAIN_S = 0.02
"""Until an interrupt is repeated: by then the destructor is over."""
_IS_PART: ContextVar[bool] = ContextVar("is_part", default=False)


class Command(invoke.Task):
    """A task of Fabric whose function returns the exit code; its errors are printed as sentences."""

    def __init__(self, function: Callable[..., int | None], interrupted: str = REMOTE_GOES_ON) -> None:
        @functools.wraps(function)
        def run(context: invoke.Context, **options: Any) -> None:
            sys.exit(self.code(**{PARAMETERS.get(name, name): value for name, value in options.items()}))

        known = [
            one.replace(name=OPTIONS.get(name, name)) for name, one in inspect.signature(function).parameters.items()
        ]
        context = inspect.Parameter("context", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        run.__signature__ = inspect.Signature([context, *known])  # type: ignore[attr-defined]
        names = [one.name for one in known]
        super().__init__(
            run,
            positional=[name for name in POSITIONAL if name in names],
            iterable=[name for name in REPEATED if name in names],
            help={name: HELP[name] for name in names},
        )
        self.function, self.interrupted = function, interrupted

    def arg_opts(self, name: str, default: str, taken_names: set[str]) -> dict[str, Any]:
        """Give an option its letter."""
        options = super().arg_opts(name, default, taken_names)
        if letter := SHORT.get(name):
            options["names"] = [name, letter]
        return options

    def code(self, **options: Any) -> int:
        """Run the function, print its error, and return the exit code."""
        try:
            # A full disk keeps no command from what it does with the names that are known.
            with suppress(OSError, CommandFailed):
                renamed.settle(Home.of(), options.get("stack"))
            return self.function(**options) or 0
        except KeyboardInterrupt as pressed:
            note(f"\nInterrupted; {str(pressed) or self.interrupted}. To continue, run the same command again.")
            return INTERRUPTED
        except BrokenPipeError:
            sys.stdout = None  # type: ignore[assignment] - the reader has gone, and Python would print an error at exit
            return FAILED
        except Exception as error:  # noqa: BLE001 - the outermost handler: a traceback does not help a user
            text, code = _end(error, f"fab {self.function.__name__.replace('_', '-')}")
            note(text)
            return code


def command(function: Callable[..., int | None]) -> Command:
    """Make a command of ``function``."""
    return Command(function)


def local_command(function: Callable[..., int | None]) -> Command:
    """Make a command of ``function``, whose own steps are all on this computer."""
    return Command(function, STEPS_ARE_KEPT)


def run_part(part: Command, **options: Any) -> int:
    """Run a command as a part of another one, which prints what to do next; return its exit code.

    Raises:
        KeyboardInterrupt: the part was interrupted.
    """
    before = _IS_PART.set(True)
    try:
        code = part.code(**options)
    finally:
        _IS_PART.reset(before)
    if code == INTERRUPTED:
        raise KeyboardInterrupt
    return code


def is_part() -> bool:
    """Return whether another command runs this one."""
    return _IS_PART.get()


def suggest(text: str) -> None:
    """Print the next command, unless another command runs this one."""
    if not is_part():
        say(f"Next: {text}")


def interrupt_at_end_of_session() -> None:
    """Let a closed terminal and a `kill` end a command as Ctrl-C does."""
    sys.unraisablehook = _interrupt_again
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # As under nohup.
            signal.signal(number, signal.default_int_handler)


def _interrupt_again(unraisable: Any) -> None:
    """Repeat an interrupt that came while a destructor ran, which swallows it."""
    if isinstance(unraisable.exc_value, KeyboardInterrupt):
        main = threading.main_thread().ident
        again = threading.Timer(AGAIN_S, signal.pthread_kill, (main, signal.SIGTERM))
        again.daemon = True
        with suppress(RuntimeError):  # At the end of the process no thread starts any more.
            again.start()
    else:
        sys.__unraisablehook__(unraisable)


def each_with_its_option(words: Sequence[str]) -> list[str]:
    """Put the option before every word of a list, as in ``compare A B``, which Fabric would take for commands."""
    option = LISTS.get(words[0]) if words else None
    if option is None:
        return list(words)
    rest = [word for word in words[1:] if word != option]
    return [words[0], *(word if word.startswith("-") else f"{option}={word}" for word in rest)]


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


def sentence(text: str) -> str:
    """Return ``text`` with a capital letter."""
    return text[:1].upper() + text[1:]


def _end(error: Exception, command: str) -> tuple[str, int]:
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
