"""Summary of a run's events for those who look at it: the last ones of each kind, and of those before some that are far enough apart.

A program may make a million steps, and nobody can read all of progress.jsonl every second or two. So the supervisor writes down a summary
of every megabyte, and a look reads that and what was written since.
"""

import contextlib
import json
import os
from typing import Any, List, NamedTuple

from agent.machine import write_whole

EVENTS, FILE = "progress.jsonl", "progress_summary.json"
EVERY_BYTES = 1 << 20
LAST, POINTS, MOST = 20, 200, 4000
"""Numbers of last events and of points before them for each kind, and about the most points of all kinds together."""
MOST_KINDS = 2000
"""A program may give each line another name."""
Summary = NamedTuple("Summary", [("offset", int), ("events", List[Any])])
"""Bytes of the events that are summed up or read, and the events that are left of them in their order; None for a line that is no JSON."""
KIND = ("event", "name", "cause", "phase")


def read(folder: str) -> Summary:
    """Return the summary in a run's folder, with what was written since."""
    offset, events = written(folder)
    with contextlib.suppress(FileNotFoundError), open(os.path.join(folder, EVENTS), "rb") as file:
        file.seek(offset)
        for lines in iter(lambda: file.readlines(EVERY_BYTES), []):
            cut_off = [] if lines[-1].endswith(b"\n") else [lines.pop()]
            offset += sum(map(len, lines))
            # The last line may just be being written; any other that cannot be read is None, and counted by who looks.
            events = thinned(events + list(map(value_of, lines)) + [one for one in map(value_of, cut_off) if one])
    return Summary(offset, events)


def written(folder: str) -> Summary:
    """Return the summary in a run's folder, an empty one where it is missing or is not that of the file."""
    try:
        with open(os.path.join(folder, FILE)) as file:
            offset, events = json.load(file)
        if offset <= os.path.getsize(os.path.join(folder, EVENTS)):
            return Summary(offset, events)
    except (OSError, ValueError):
        pass
    return Summary(0, [])


def write(folder: str, afresh: bool = False) -> None:
    """Bring the summary up to date; ``afresh`` after the events themselves have changed."""
    path = os.path.join(folder, FILE)
    with contextlib.suppress(OSError):  # Without it a look takes longer, and no more.
        if afresh and os.path.exists(path):
            os.remove(path)
        write_whole(path, json.dumps(read(folder)))


def value_of(line: bytes) -> Any:
    """Return what a line of JSON holds, or None."""
    try:
        return json.loads(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None


def thinned(events: List[Any]) -> List[Any]:
    """Leave out events of which there are too many of the same kind; a loss that is no number is a kind of its own."""
    kinds = {}
    for number, event in enumerate(events):
        found = event if isinstance(event, dict) else {}
        kind = [str(found.get(key)) for key in KIND] + [str(isinstance(found.get("loss"), str))]
        if tuple(kind) in kinds or len(kinds) < MOST_KINDS:
            kinds.setdefault(tuple(kind), []).append(number)
    points = min(POINTS, max(MOST // len(kinds), 1)) if kinds else 0
    kept = [number for numbers in kinds.values() for number in spread(events, numbers, points)]
    return [events[number] for number in sorted(kept)]


def spread(events: List[Any], numbers: List[int], points: int) -> List[int]:
    """Return the last of ``numbers``, and before them those whose times divide the whole time evenly."""
    last = min(LAST, points)
    if len(numbers) <= points + last:
        return numbers
    early, times = numbers[:-last], [time_of(events[number]) for number in numbers[:-last]]
    gap, kept, at = abs(times[-1] - times[0]) / points, [], None
    for number, time in zip(early, times):
        if at is None or abs(time - at) > gap:
            kept.append(number)
            at = time
    return kept[-2 * points :] + numbers[-last:]


def time_of(event: Any) -> float:
    found = event.get("t") if isinstance(event, dict) else None
    return found if type(found) in (int, float) else 0
