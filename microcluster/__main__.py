"""The command behind the Makefile: ``python -m microcluster <verb> [--stack STACK]``."""

import argparse
import signal
import sys
from types import FrameType

from core.plain_text import note
from core.waiting import NotReadyError
from microcluster.setup import secret_env
from microcluster.setup.errors import FAILED, INTERRUPTED, SetupError, of_the_system


def main(arguments: list[str] | None = None) -> int:
    """Run one verb; a failure is a sentence on stderr and an exit code."""
    parser = argparse.ArgumentParser(prog="python -m microcluster", description=__doc__)
    parser.add_argument("verb")
    parser.add_argument("--stack", default="local")
    given = parser.parse_args(arguments)
    secret_env.withhold()
    signal.signal(signal.SIGTERM, _as_interrupt)
    signal.signal(signal.SIGHUP, _as_interrupt)
    command = f"make {given.verb}"
    try:
        return _run(given.verb, given.stack)
    except KeyboardInterrupt:
        note(f"\nStopped. Finished steps are kept; `{command} STACK={given.stack}` continues from there.")
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001 - the last resort; see unforeseen.py
        note(_sentence(error, command, given.stack))
        return error.exit_code if isinstance(error, SetupError) else FAILED


def _sentence(error: Exception, command: str, stack: str) -> str:
    if isinstance(error, SetupError):
        return str(error)
    if isinstance(error, NotReadyError):
        return f"{command}: {error} Repeat the same command."
    if isinstance(error, ModuleNotFoundError):  # `make down` uses .venv as it is; it may be of an older version.
        again = f"`make setup` installs it, then `{command} STACK={stack}` again"
        return f"{command}: .venv has no Python package {error.name}. Nothing was done: {again}."
    if isinstance(error, OSError):  # For example a full disk.
        return f"{command}: {of_the_system(error)}. Fix that, then repeat the same command."
    from microcluster.setup import unforeseen  # noqa: PLC0415

    return unforeseen.sentence(command, error)


def _run(verb: str, stack: str) -> int:
    # Imported here, so that a Ctrl-C during this half second is a sentence too.
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
