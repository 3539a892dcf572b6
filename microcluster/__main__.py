"""The command behind the Makefile: ``python -m microcluster <verb> [--stack STACK]``."""

from __future__ import annotations

import argparse
import signal
import sys
from types import FrameType

from microcluster.plain_text import say
from microcluster.setup import secret_env
from microcluster.setup.errors import FAILED, INTERRUPTED, SetupError, of_the_system


def main(arguments: list[str] | None = None) -> int:
    """Run one verb; every failure is a sentence on stderr and an exit code."""
    parser = argparse.ArgumentParser(prog="python -m microcluster", description=__doc__)
    parser.add_argument("verb")
    parser.add_argument("--stack", default="local")
    given = parser.parse_args(arguments)
    secret_env.withhold()
    signal.signal(signal.SIGTERM, _as_interrupt)
    signal.signal(signal.SIGHUP, _as_interrupt)
    try:
        return _run(given.verb, given.stack)
    except SetupError as error:
        say(str(error), sys.stderr)
        return error.exit_code
    except ModuleNotFoundError as missing:  # `make down` takes .venv as it is, which may be of an older version.
        again = f"`make setup` installs it, then `make {given.verb} STACK={given.stack}` again"
        say(f"make {given.verb}: .venv has no Python package {missing.name}. Nothing was done: {again}.", sys.stderr)
        return FAILED
    except OSError as error:  # A full disk, a folder that may not be written to.
        say(f"make {given.verb}: {of_the_system(error)}. See to it, then repeat the same command.", sys.stderr)
        return FAILED
    except Exception as error:  # noqa: BLE001 - the last resort; see its module
        from microcluster.setup import unforeseen  # noqa: PLC0415

        say(unforeseen.sentence(f"make {given.verb}", error), sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        again = f"`make {given.verb} STACK={given.stack}` goes on from there"
        say(f"\nStopped. What was done is kept; {again}.", sys.stderr)
        return INTERRUPTED


def _run(verb: str, stack: str) -> int:
    # Imported here, so that a Ctrl-C during the half second this takes is a sentence too.
    from microcluster.lifecycle import stacks  # noqa: PLC0415
    from microcluster.setup.environment import Home  # noqa: PLC0415
    from microcluster.targets import run  # noqa: PLC0415

    home = Home.of()
    home.make()
    return run(verb, home, stacks.known(stack))


def _as_interrupt(_: int, __: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
