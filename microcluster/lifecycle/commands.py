"""Runs Pulumi and the Fabric verbs for make."""

from __future__ import annotations

import json
from typing import Any

from microcluster.home import Home
from microcluster.lifecycle.pulumi_output import View
from microcluster.setup.environment import FAB, PART_OF_MAKE, PULUMI, with_account
from microcluster.setup.process import output_of, run_filtered, run_in_view

PULUMI_OPTIONS = ("--non-interactive", "--color", "never", "--suppress-permalink=true")
"""Plain lines, without a link to a file."""
NO_OUTPUTS = "--suppress-outputs"
"""The outputs are JSON for the verbs, not for people."""
STATUS_LIMIT_S, LIST_LIMIT_S = 60, 300


def pulumi(home: Home, *words: str) -> int:
    """Run a Pulumi command with filtered output; return its exit code."""
    return run_filtered((str(PULUMI), *words, *PULUMI_OPTIONS), with_account(home), View().shown)


def fab(home: Home, verb: str, stack: str, *options: str, limit_s: float | None = None) -> int:
    """Run a verb on this screen and return its exit code; make prints the next command."""
    argv = (str(FAB), verb, "--stack", stack, *options)
    return run_in_view(argv, with_account(home) | {PART_OF_MAKE: "1"}, limit_s)


def status(home: Home, stack: str) -> dict[str, Any] | None:
    """Return `fab status --json`, or None where it fails."""
    answer = output_of((str(FAB), "status", "--stack", stack, "--json"), with_account(home), STATUS_LIMIT_S)
    return json.loads(answer) if answer else None


def unfetched(home: Home, stack: str) -> list[dict[str, Any]] | None:
    """Return `fab fetch --unfetched --json`, or None where it fails."""
    argv = (str(FAB), "fetch", "--stack", stack, "--unfetched", "--json")
    answer = output_of(argv, with_account(home), LIST_LIMIT_S)
    return json.loads(answer) if answer else None
