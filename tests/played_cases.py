"""What programs that play many cases share: where a case lies, and which failures were the most."""

import re
import tempfile
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

MEMORY = Path("/dev/shm")  # noqa: S108 - the folder in it has a name of its own
LONGEST_CAUSE, MOST_NUMBERS = 150, 12


def folder_in_memory(prefix: str) -> Path:
    """Make a folder in memory where there is room for one, else among temporary files."""
    return Path(tempfile.mkdtemp(prefix=prefix, dir=MEMORY if MEMORY.is_dir() else None))


def by_cause(failures: Iterable[tuple[int, str]]) -> list[str]:
    """Return how often each failure is, with its cases; what differs in numbers and names only counts as one.

    Args:
        failures: (number of the case, sentence).
    """
    cases: dict[str, list[int]] = defaultdict(list)
    for number, sentence in failures:
        cases[re.sub(r"[\d.,-]*\d[\d.,-]*|'[^']*'", "N", sentence)[:LONGEST_CAUSE]].append(number)
    lines = sorted(cases.items(), key=lambda pair: -len(pair[1]))
    return [f"{len(of):5} times: {cause} (cases {' '.join(map(str, of[:MOST_NUMBERS]))})" for cause, of in lines]
