"""A command of `fab`: a function, its options, and the exit code that it returns."""

import functools
import inspect
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any, get_args, get_type_hints

import invoke

from microcluster.command_line.parts import COMMAND, REMOTE_GOES_ON, STEPS_ARE_KEPT, exit_code

STACK = "local"


@dataclass(frozen=True)
class Option:
    """Option of a command, beside its parameter: ``Annotated[bool, Option("print JSON", name="json")]``.

    Attributes:
        name: where it is not that of the parameter.
        letter: where it is not the name's first that is free.
        may_be_left_out: whether words without a dash are its values, as in ``fab compare RUN RUN``.
    """

    help: str
    name: str = ""
    letter: str = ""
    may_be_left_out: bool = False


StackName = Annotated[str, Option("NAME of stacks/Pulumi.NAME.yaml; default: local")]
AsJson = Annotated[bool, Option("print JSON", name="json")]
Node = Annotated[str, Option("name of the machine, for example gpu-0")]
Mark = Annotated[
    str, Option("the mark of what is meant, eight hex digits; fab guard takes up what another computer has ordered")
]
Yes = Annotated[bool, Option("do not ask")]
FetchFirst = Annotated[bool, Option("where a run would be lost with its machines: fetch it first", name="fetch")]
Discard = Annotated[bool, Option("where a run would be lost with its machines: give it up")]
AGAIN_S = 0.02
"""Until an interrupt is repeated: by then the destructor is over."""


class Command(invoke.Task):
    """A task of Fabric whose function returns the exit code; its errors are printed as sentences."""

    def __init__(self, function: Callable[..., int | None], interrupted: str = REMOTE_GOES_ON) -> None:
        @functools.wraps(function)
        def run(context: invoke.Context, **values: Any) -> None:
            sys.exit(self.code(**{self.parameters[name].name: value for name, value in values.items()}))

        hints, known = get_type_hints(function, include_extras=True), inspect.signature(function).parameters
        described = {name: get_args(hints[name])[1] for name in known}
        self.options = {option.name or name: option for name, option in described.items()}
        self.parameters = dict(zip(self.options, known.values(), strict=True))
        context = inspect.Parameter("context", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        renamed = [one.replace(name=name) for name, one in self.parameters.items()]
        run.__signature__ = inspect.Signature([context, *renamed])  # type: ignore[attr-defined]
        super().__init__(
            run,
            positional=[name for name, one in self.parameters.items() if one.default is one.empty],
            iterable=[name for name, one in self.parameters.items() if one.default is None],
            help={name: option.help for name, option in self.options.items()},
        )
        self.function, self.interrupted = function, interrupted

    def arg_opts(self, name: str, default: str, taken_names: set[str]) -> dict[str, Any]:
        """Give an option its letter."""
        options = super().arg_opts(name, default, taken_names)
        if letter := self.options[name].letter:
            options["names"] = [name, letter]
        return options

    def with_option(self, words: Sequence[str]) -> list[str]:
        """Put the option that may be left out before each of its values, which Fabric would take for commands."""
        left_out = next((f"--{name}" for name, option in self.options.items() if option.may_be_left_out), "")
        if not left_out:
            return list(words)
        return [word if word.startswith("-") else f"{left_out}={word}" for word in words if word != left_out]

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
