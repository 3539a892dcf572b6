"""What make runs for a stack: Pulumi, and the verbs of Fabric."""

from __future__ import annotations

import json
from typing import Any

from microcluster.home import Home
from microcluster.lifecycle.pulumi_output import View
from microcluster.setup.environment import FAB, PART_OF_MAKE, PULUMI, with_account
from microcluster.setup.process import output_of, run_filtered, run_in_view

PULUMI_OPTIONS = ("--non-interactive", "--color", "never", "--suppress-permalink=true")
"""Lines that stay on the screen, and no link to a file."""
NO_OUTPUTS = "--suppress-outputs"
"""The outputs of a stack are JSON for the verbs, not for a person."""
STATUS_LIMIT_S = 60


def pulumi(home: Home, *words: str) -> int:
    """Run a Pulumi command and return its exit code; the screen shows the lines that say something."""
    return run_filtered((str(PULUMI), *words, *PULUMI_OPTIONS), with_account(home), View().told)


def fab(home: Home, verb: str, stack: str, *options: str, limit_s: float | None = None) -> int:
    """Run a verb on this screen and return its exit code; make itself says what to do next."""
    argv = (str(FAB), verb, "--stack", stack, *options)
    return run_in_view(argv, with_account(home) | {PART_OF_MAKE: "1"}, limit_s)


def status(home: Home, stack: str) -> dict[str, Any] | None:
    """Return the facts of `fab status --json`, or None where it cannot tell."""
    answer = output_of((str(FAB), "status", "--stack", stack, "--json"), with_account(home), STATUS_LIMIT_S)
    return json.loads(answer) if answer else None
