"""`fab report --runs`: runs beside each other, from what their reports left on this computer."""

import json as json_text
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from core.plain_text import printable, say
from microcluster.analysis import comparison
from microcluster.commands.command import UserMistake, print_json
from microcluster.commands.screen import show_table
from microcluster.setup.environment import ARTIFACTS

FACTS = "report.json"
NEEDED = ("kind", "unit", "trains", "metrics")
"""What reports of before runs were compared lack."""
WIDTH = 200


def compare(names: Sequence[str], *, json: bool, artifacts: Path = ARTIFACTS) -> int:
    """Print the table and whether more machines paid; the machines need not be there any more."""
    if len(names) < 2:
        raise UserMistake("fab report --runs compares at least two runs; for example: fab report --runs RUN RUN")
    found = [_facts(name, artifacts) for name in names]
    if len({one["kind"] for one in found}) > 1:
        kinds = ", ".join(f"{one['run']} is of kind {one['kind']}" for one in found)
        raise UserMistake(f"Comparing runs: {kinds}. Runs of one kind can be compared.")
    runs = [comparison.compared(one) for one in found]
    judged = comparison.verdicts(runs)
    if json:
        print_json({"runs": [{**asdict(one), "per_step": one.per_step} for one in runs], "verdicts": judged})
        return 0
    heads, rows = comparison.table(runs)
    sides = ["left"] * 3 + ["right"] * (len(heads) - 3)
    show_table(tuple(zip(heads, sides, strict=True)), rows, width=WIDTH, box=None, pad_edge=False)
    for verdict in judged:
        say(verdict)
    return 0


def _facts(name: str, artifacts: Path) -> Mapping[str, Any]:
    """Return what the report of a run left here; ``name`` is the run, or how it begins."""
    reports = {path.parent.name: path for path in sorted(artifacts.glob(f"*/*/{FACTS}"))}
    matching = [run for run in reports if name and run.startswith(name)]
    if len(matching) != 1:
        known = ", ".join(f"{run} ({path.parent.parent.name})" for run, path in reports.items()) or "none"
        how = "begins more than one run" if matching else "is no run with a report on this computer"
        raise UserMistake(
            f"{printable(name)!r} {how}. Runs with a report: {known}. Write one while its machines are there: fab report --stack STACK"
        )
    path = reports[matching[0]]
    facts = json_text.loads(path.read_text())
    if any(key not in facts for key in NEEDED):
        raise UserMistake(
            f"{path} was written by an earlier version. Write it again while the machines are there: "
            f"fab report --stack {path.parent.parent.name}"
        )
    return facts
