"""A command of `fab`: a function, its options, and the exit code that it returns."""

import functools
import inspect
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import invoke

from microcluster.command_line.parts import COMMAND, REMOTE_GOES_ON, STEPS_ARE_KEPT, exit_code

STACK = "local"
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
        before = COMMAND.set(f"fab {self.function.__name__.replace('_', '-')}")
        try:
            return exit_code(self.function, self.interrupted, **options)
        finally:
            COMMAND.reset(before)


def command(function: Callable[..., int | None]) -> Command:
    """Make a command of ``function``."""
    return Command(function)


def local_command(function: Callable[..., int | None]) -> Command:
    """Make a command of ``function``, whose own steps are all on this computer."""
    return Command(function, STEPS_ARE_KEPT)


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
