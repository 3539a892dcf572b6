"""The verbs behind the Makefile: ``python -m setup <verb> [--stack STACK]``."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Callable, Mapping
from types import FrameType

from setup import prepare, stacks
from setup.environment import Home
from setup.errors import INTERRUPTED, SetupError
from setup.progress import Stages, say


def engine(home: Home, _: str) -> int:
    """Install the Pulumi engine only."""
    prepare.prepare_engine(home, Stages())
    return 0


VERBS: Mapping[str, Callable[[Home, str], int]] = {
    "setup": lambda home, _: prepare.setup(home),
    "engine": engine,
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
