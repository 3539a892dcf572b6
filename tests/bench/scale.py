"""Measure `pulumi up` and `pulumi destroy` of N machines without containers: what they cost beyond the account's own time.

    .venv/bin/python -m tests.bench.scale            all sizes
    .venv/bin/python -m tests.bench.scale 1 64       these

The account's clock goes as fast as ours and its limit of 50 calls a second holds, so that the provider's own waits and pace count.
"""

import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.chaos.accounts import AccountServer
from tests.chaos.command_line import DESTROY, PROVIDER, UP, Copy

SIZES = (1, 2, 4, 8, 16, 32, 64)
PROVISIONING_S = 10.0
SETTINGS = {"clock_rate": 1.0, "provisioning_s": PROVISIONING_S, "reclaim_s": 5.0, "calls_per_second": 50}
AIM_S = 5.0
AIM_CALLS = 12.0
EVERY_S = 1.0
KIB = 1024


def measure(console: Console, sizes: Sequence[int] = SIZES) -> None:
    """Measure every size in an account of its own, and print the table."""
    server = AccountServer()
    table = Table("machines", "up beyond provisioning", "calls", "calls per machine", "destroy", "calls", "provider")
    beyond = []
    with tempfile.TemporaryDirectory(prefix="microcluster-bench-") as folder:
        copy = Copy(Path(folder), time_scale=1.0)
        for machines in sizes:
            copy.declare_nodes(machines)
            home = Path(folder) / f"home-{machines}"
            with copy.home(server, home, **SETTINGS):
                with _sampled(PROVIDER, str(copy.product.folder)) as provider:
                    up_s, calls = _timed(server, copy, home, UP)
                destroy_s, destroy_calls = _timed(server, copy, home, DESTROY)
            beyond.append(up_s - PROVISIONING_S)
            up = (f"{beyond[-1]:.1f} s", str(calls), f"{calls / machines:.1f}")
            table.add_row(str(machines), *up, f"{destroy_s:.1f} s", str(destroy_calls), f"{max(provider):.0f} MB")
    server.close()
    console.print(table)
    if len(sizes) > 1:
        slope, base = statistics.linear_regression(sizes, beyond)
        console.print(
            f"up beyond the provisioning of {PROVISIONING_S:g} s: {base:.1f} s and {slope * 1000:.0f} ms per machine "
            f"(aim: below {AIM_S:g} s at 64 machines, at most {AIM_CALLS:g} calls per machine)"
        )


def _timed(server: AccountServer, copy: Copy, home: Path, line: str) -> tuple[float, int]:
    """Run a command; return its seconds and calls."""
    server.wire.arm(None)
    began = time.monotonic()
    code, output = copy.start(line, home).ended()
    assert code == 0, output
    return time.monotonic() - began, len(server.wire.calls)


@contextmanager
def _sampled(*words: str) -> Iterator[list[float]]:
    """Yield a list that gets the memory in MB of the processes whose command line holds all the words, as long as the block runs."""
    found = [0.0]
    over = threading.Event()

    def sample() -> None:
        while not over.wait(EVERY_S):
            found.extend(_resident_mb(*words))

    thread = threading.Thread(target=sample, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        over.set()
        thread.join()


def _resident_mb(*words: str) -> list[float]:
    """Return the proportional set sizes in MB (10^6 bytes) of these processes; shared pages count once in all."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # It has ended.
            line = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if all(word in line for word in words):
                rows = (process / "smaps_rollup").read_text().splitlines()
                found.append(sum(int(row.split()[1]) for row in rows if row.startswith("Pss:")) * KIB / 1e6)
    return found


if __name__ == "__main__":
    measure(Console(), [int(word) for word in sys.argv[1:]] or SIZES)
