"""A function in a process of its own that can be ended: what a machine answers may hold all threads of the one that reads it."""

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from pydantic_core import from_json, to_json

from microcluster.command_line.command import interrupt_at_end_of_session
from microcluster.command_line.parts import COMMAND, run_part
from microcluster.setup.errors import INTERRUPTED
from microcluster.setup.process import QUIETLY, start, stop_group

GRACE_S = 5.0
MOST_BYTES = 16 << 20


def apart(limit_s: float, function: Callable[..., Any], **options: Any) -> Any | None:
    """Return what a function returns, as JSON; None where it failed or was not over after ``limit_s``.

    Args:
        function: one of a module, by its own name there.
        options: what JSON can hold.
    """
    with os.fdopen(os.memfd_create("result"), "r+b") as result:  # No disk may be full.
        words = (str(result.fileno()), function.__module__, function.__name__, json.dumps(options))
        argv = (sys.executable, "-m", "microcluster.command_line.apart", *words)
        process = start(argv, os.environ, pass_fds=(result.fileno(),))
        try:
            with suppress(subprocess.TimeoutExpired):
                process.wait(limit_s)
        finally:
            stop_group(process, QUIETLY, GRACE_S)
        result.seek(0)
        text = result.read(MOST_BYTES)
    return from_json(text) if text and process.returncode == 0 else None


def run_part_apart(limit_s: float, function: Callable[..., int | None], **options: Any) -> int | None:
    """Run a function as a part of a command; return its exit code, or None where it was not over after ``limit_s``."""
    named = {"module": function.__module__, "name": function.__name__, "command": COMMAND.get()}
    return apart(limit_s, exit_code_of, **named, options=options)


def exit_code_of(module: str, name: str, command: str, options: dict[str, Any]) -> int:
    """Run a function, by its name, as a part of ``command``; return its exit code."""
    COMMAND.set(command)
    return run_part(getattr(importlib.import_module(module), name), **options)


def main(result: str, module: str, name: str, options: str) -> None:
    """Call the function, and write what it returns into the inherited file ``result``."""
    interrupt_at_end_of_session()
    function, known = getattr(importlib.import_module(module), name), json.loads(options)
    with open(int(result), "wb") as file:
        file.write(to_json(function(**known)))


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
