"""Which step a moment of a run belongs to: the times of its log's lines against those of the samples of its machines. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Event = Mapping[str, Any]
Log = Sequence[tuple[float, int]]
"""Time and step of each loss line."""


def attempts(events: Sequence[Event]) -> Iterator[list[Event]]:
    """Cut what happened into the times in which ranks trained; samples stand in a file of their own, so times decide."""
    current: list[Event] | None = None
    for event in sorted((event for event in events if "t" in event), key=lambda event: event["t"]):
        if event["event"] in ("phase", "end"):
            if current:
                yield current
            current = [] if event.get("phase") == "training" else None
        elif current is not None:
            current.append(event)
    if current:
        yield current


def log_of(attempt: Sequence[Event]) -> Log:
    """Return when each loss line was written."""
    return [(event["t"], event["step"]) for event in attempt if event["event"] == "train"]


def samples_of(attempt: Sequence[Event], log: Log) -> list[Event]:
    """Return the samples between the first and the last step that was logged: before and after them other things go on."""
    if not log:
        return []
    return [event for event in attempt if event["event"] == "sample" and log[0][0] <= event["t"] <= log[-1][0]]


def step_at(log: Log, t: float) -> tuple[float, float, float]:
    """Return the step at a moment: the last that was logged by then, the interpolated one, the next that was logged."""
    number = bisect_right(log, t, key=lambda entry: entry[0])
    before, after = log[max(number - 1, 0)], log[min(number, len(log) - 1)]
    share = (t - before[0]) / (after[0] - before[0]) if after[0] > before[0] else 0.0
    return float(before[1]), before[1] + share * (after[1] - before[1]), float(after[1])
