"""The verbs behind the Makefile: ``python -m setup <verb> [--stack STACK]``."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Callable, Mapping
from types import FrameType

from setup import local_account, prepare, stacks, testing
from setup.down import down
from setup.environment import PYTHON, Home, child_environment
from setup.errors import INTERRUPTED, MISTAKE, SetupError
from setup.process import run_in_view
from setup.progress import Stages, say
from setup.up import preview, up


def engine(home: Home, _: str) -> int:
    """Install the Pulumi engine only."""
    prepare.prepare_engine(home, Stages())
    return 0


def images(home: Home, _: str) -> int:
    """Build what is missing of the local stack's images."""
    local_account.prepare_images(home, Stages())
    return 0


def emulator(home: Home, stack: str) -> int:
    """Start the emulated account of a stack, and what its machines need."""
    state = stacks.emulator_of(stack, home)
    if state is None:
        raise SetupError(
            f"Stack {stack} has a real account; no emulator plays it. Try: make emulator STACK=local", MISTAKE
        )
    local_account.start(state, home, Stages())
    say("Next: `make up`, or `. ./env.sh` and `python -m emulator status`.")
    return 0


def bench(home: Home, _: str) -> int:
    """Measure the project's own figures."""
    prepare.prepare_engine(home, Stages())
    return run_in_view((str(PYTHON), "-m", "bench"), child_environment(home))


VERBS: Mapping[str, Callable[[Home, str], int]] = {
    "setup": lambda home, _: prepare.setup(home),
    "preview": preview,
    "up": up,
    "down": down,
    "test": lambda home, _: testing.test(home),
    "bench": bench,
    "images": images,
    "engine": engine,
    "emulator": emulator,
}


def main(arguments: list[str] | None = None) -> int:
    """Run one verb; every failure is a sentence on stderr and an exit code."""
    parser = argparse.ArgumentParser(prog="python -m setup", description=__doc__)
    parser.add_argument("verb", choices=VERBS)
    parser.add_argument("--stack", default="local")
    given = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, _as_interrupt)
    signal.signal(signal.SIGHUP, _as_interrupt)
    try:
        home = Home.of(os.environ)
        home.make()
        return VERBS[given.verb](home, stacks.known(given.stack))
    except SetupError as error:
        say(str(error), sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        say(
            f"\nStopped. What was done is kept; `make {given.verb} STACK={given.stack}` goes on from there.", sys.stderr
        )
        return INTERRUPTED


def _as_interrupt(_: int, __: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
