"""The commands: `fab --list` lists them, `fab --help COMMAND` explains one; run `. ./env.sh` first."""

from microcluster.setup import secret_env

secret_env.withhold()  # First of all: no child process of fab may inherit the account's variables.

import signal  # noqa: E402
import sys  # noqa: E402
from collections.abc import Sequence  # noqa: E402
from importlib import import_module  # noqa: E402
from pkgutil import iter_modules  # noqa: E402

from fabric.main import program  # noqa: E402
from invoke import Collection, ParseError  # noqa: E402

import microcluster.commands  # noqa: E402

sys.dont_write_bytecode = sys.flags.dont_write_bytecode  # Invoke sets it, and each command compiled all modules again.

MISTAKE, INTERRUPTED = 2, 130
BESIDE = {"engine": "setup", "images": "setup", "emulator": "setup", "extend": "guard"}
NAMES = sorted(module.name for module in iter_modules(microcluster.commands.__path__))
MODULES = {name: name for name in NAMES if name != "step"} | BESIDE
"""The module of every command that people use."""


def commands(words: Sequence[str]) -> Collection:
    """Return the commands that ``words`` name, or all that people use.

    Nothing else is imported: `make down` must work in an older .venv that lacks a package of another command. The steps that
    only Pulumi calls are there when they are called.
    """
    wanted = [name for name in MODULES if name in words]
    is_step = any(word.startswith("step.") for word in words)
    if not (wanted or is_step):
        wanted = list(MODULES)
    found = Collection(*(getattr(import_module(f"microcluster.commands.{MODULES[name]}"), name) for name in wanted))
    if is_step:
        found.add_collection(Collection.from_module(import_module("microcluster.commands.step")), "step")
    return found


def parse_tasks() -> None:
    """Let a command line that cannot be understood end as every other mistake of the user."""
    try:
        type(program).parse_tasks(program)
    except (ParseError, ValueError) as wrong:  # A word where a number is wanted is a ValueError.
        print(
            f"{str(wrong).rstrip('.')}. The commands: fab --list. The options of one: fab --help COMMAND",
            file=sys.stderr,
        )
        sys.exit(MISTAKE)


def begin(words: list[str]) -> None:
    """Adapt Fabric's reading of the command line ``words`` to these commands."""
    from microcluster.command_line.command import interrupt_at_end_of_session  # noqa: PLC0415

    if not words:
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # A list whose reader has gone is over.
    if not any(word.startswith("step.") for word in words):
        interrupt_at_end_of_session()
    # `fab ssh NODE -- COMMAND`: Fabric itself would run what follows the dashes, on the hosts of its option -H.
    program.core.remainder = ""
    if words and (named := ns.tasks.get(words[0])):
        words[1:] = named.with_option(words[1:])
    program.parse_tasks = parse_tasks


try:
    ns = commands(sys.argv[1:])
    if hasattr(program, "core"):
        begin(program.core.unparsed)
except ImportError as missing:  # Also a package of another version.
    sys.exit(f".venv does not fit ({missing}). `make setup` renews it, then run the same command again.")
except KeyboardInterrupt:
    print("\nInterrupted while the commands were read; nothing was done.", file=sys.stderr)
    sys.exit(INTERRUPTED)
