"""Measure `pulumi up` and `pulumi destroy` of N machines without containers: what they cost beyond the account's own time.

    .venv/bin/python -m tools.bench.scale            all sizes
    .venv/bin/python -m tools.bench.scale 1 64       these

The account's clock goes as fast as ours and its limit of 50 calls a second holds, so that the provider's own waits and pace count.
"""

import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tools.bench.memory import sampled, with_words
from tools.chaos.accounts import AccountServer
from tools.chaos.command_line import DESTROY, PROVIDER, UP, CommandLine, Copy

SIZES = (1, 2, 4, 8, 16, 32, 64)
PROVISIONING_S = 10.0
SETTINGS = {"clock_rate": 1.0, "provisioning_s": PROVISIONING_S, "reclaim_s": 5.0, "calls_per_second": 50}
AIM_S = 5.0
AIM_CALLS = 12.0


@dataclass(frozen=True)
class Figure:
    """What one size cost."""

    machines: int
    beyond_s: float
    """Wall time of ``up`` without the provisioning."""
    destroy_s: float
    calls: int
    destroy_calls: int
    provider_mb: float


def measure(console: Console, sizes: Sequence[int] = SIZES) -> list[Figure]:
    """Measure every size in an account of its own, and print the table."""
    server = AccountServer()
    with tempfile.TemporaryDirectory(prefix="microcluster-bench-") as folder:
        copy = Copy(Path(folder), time_scale=1.0)
        figures = []
        for machines in sizes:
            copy.declare_nodes(machines)
            with copy.home(server, Path(folder) / f"home-{machines}", **SETTINGS) as line:
                figures.append(_measured(server, line, machines))
    server.close()
    _show(console, figures)
    return figures


def _measured(server: AccountServer, line: CommandLine, machines: int) -> Figure:
    with sampled(lambda: with_words(PROVIDER, str(line.project))) as provider:
        up_s, calls = _timed(server, line, UP)
    largest_mb = max(provider.values(), default=0.0)
    destroy_s, destroy_calls = _timed(server, line, DESTROY)
    return Figure(machines, up_s - PROVISIONING_S, destroy_s, calls, destroy_calls, largest_mb)


def _timed(server: AccountServer, line: CommandLine, words: str) -> tuple[float, int]:
    server.wire.arm(None)
    began = time.monotonic()
    said = line.run(words)
    assert said.exit_code == 0, said.output
    return time.monotonic() - began, len(server.wire.calls)


def _show(console: Console, figures: Sequence[Figure]) -> None:
    table = Table("machines", "up beyond provisioning", "calls", "calls per machine", "destroy", "calls", "provider")
    for each in figures:
        table.add_row(
            str(each.machines),
            f"{each.beyond_s:.1f} s",
            str(each.calls),
            f"{each.calls / each.machines:.1f}",
            f"{each.destroy_s:.1f} s",
            str(each.destroy_calls),
            f"{each.provider_mb:.0f} MB",
        )
    console.print(table)
    if len(figures) > 1:
        slope, base = statistics.linear_regression(
            [each.machines for each in figures], [each.beyond_s for each in figures]
        )
        console.print(
            f"up beyond the provisioning of {PROVISIONING_S:g} s: {base:.1f} s and {slope * 1000:.0f} ms per machine "
            f"(aim: below {AIM_S:g} s at 64 machines, at most {AIM_CALLS:g} calls per machine)"
        )


if __name__ == "__main__":
    measure(Console(), [int(word) for word in sys.argv[1:]] or SIZES)
