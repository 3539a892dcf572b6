"""The verbs of Fabric as parts of what make does."""

from __future__ import annotations

import json
from typing import Any

from microcluster.home import Home
from microcluster.setup.environment import FAB, PART_OF_MAKE, with_account
from microcluster.setup.process import output_of, run_in_view

STATUS_LIMIT_S = 60


def in_view(home: Home, verb: str, stack: str, *options: str, limit_s: float | None = None) -> int:
    """Run a verb on this screen and return its exit code; what to do next is then for make to say."""
    argv = (str(FAB), verb, "--stack", stack, *options)
    return run_in_view(argv, with_account(home) | {PART_OF_MAKE: "1"}, limit_s)


def status(home: Home, stack: str) -> dict[str, Any] | None:
    """Return what ``fab status --json`` says, or None where it cannot tell."""
    answer = output_of((str(FAB), "status", "--stack", stack, "--json"), with_account(home), STATUS_LIMIT_S)
    return json.loads(answer) if answer else None
