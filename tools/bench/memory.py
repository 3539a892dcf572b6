"""Resident memory of processes, sampled."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

EVERY_S = 1.0
KIB = 1024


def resident_mb(process: Path) -> float:
    """Return the proportional set size of a process in MB (10^6 bytes), 0 when it is gone; shared pages count once in all."""
    try:
        lines = (process / "smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) * KIB / 1e6


def with_words(*words: str) -> list[Path]:
    """Return the processes of this computer, containers included, whose command line holds all the words."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            line = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if all(word in line for word in words):
            found.append(process)
    return found


@contextmanager
def sampled(find: Callable[[], list[Path]]) -> Iterator[dict[str, float]]:
    """Sample in the background as long as the block runs; yield the largest value that each process had."""
    peak: dict[str, float] = {}
    over = threading.Event()

    def sample() -> None:
        while not over.wait(EVERY_S):
            for process in find():
                peak[process.name] = max(peak.get(process.name, 0.0), resident_mb(process))

    thread = threading.Thread(target=sample, daemon=True)
    thread.start()
    try:
        yield peak
    finally:
        over.set()
        thread.join()
