"""Samples of the nodes: how often every machine is asked how it is, and what it answers."""

import contextlib
import json
from typing import Any, Dict, List, Optional, Sequence, Tuple

from agent.machine import parallel
from agent.nodes import node_facts
from agent.run.context import Run
from agent.run.document import RunDocument

SAMPLE_EVERY_S, SAMPLE_TIMEOUT_S = 20, 20
EARLY_S, EARLY_TIMES = 120, 4
"""Seconds in which the machines are asked more often, and how many times: a short run is measured as well."""


def pace_s(spec: RunDocument, trained_s: float) -> float:
    """Return the seconds between two samples of a run that has trained for so long; its document has the usual ones."""
    return spec.limits.sample_every_s / (EARLY_TIMES if trained_s < EARLY_S else 1.0)


def ask_all(run: Run, argv: Sequence[str]) -> List[Tuple[str, Tuple[int, str]]]:
    """Run ``argv`` on every node; return [(address, (exit code, output))]."""
    addresses = run.spec.machines.addresses

    def ask(address: str) -> Tuple[int, str]:
        return run.ask(argv, SAMPLE_TIMEOUT_S, address, marked=False)

    return list(zip(addresses, parallel(ask, addresses)))


def sampled(run: Run) -> List[Tuple[str, Optional[Dict[str, Any]]]]:
    """Return [(name, facts)] of every node; None where it does not say them."""
    answers = ask_all(run, node_facts.argv_of(run))
    return [(run.name_of(address), None if code else (words_in(out) or [None])[-1]) for address, (code, out) in answers]


def words_in(text: str) -> List[Dict[str, Any]]:
    """Return the JSON objects among the lines of what a machine printed; ssh may say something too, and a line be cut off."""
    found = []
    for line in text.splitlines():
        with contextlib.suppress(ValueError):
            found += [json.loads(line)] if line.startswith("{") else []
    return found
