"""`fab explain`: every value of a stack and where it came from."""

from __future__ import annotations

import sys

import invoke
from rich.console import Console
from rich.table import Table

import config
from verbs.frame import STACK, print_json, tell, verb


@verb
def explain(context: invoke.Context, stack: str = STACK, json: bool = False) -> int:
    """Print every value of the stack and where it came from, and what the run is expected to take."""
    known = config.read_file(stack)
    origins = known.origins
    if known.plan and known.plan.warning:
        tell(known.plan.warning)
    if json:
        print_json({path: {"value": value, "source": source} for path, value, source in origins})
        return 0
    table = Table("value", "is", "because", box=None, pad_edge=False)
    for path, value, source in origins:
        table.add_row(path, str(value), source)
    Console(file=sys.stdout, highlight=False, width=None if sys.stdout.isatty() else 160).print(table)
    return 0
