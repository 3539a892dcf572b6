"""The step of a moment of a run, from the times of the log's lines. Pure."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence

from microcluster.analysis.events import Event

Log = Sequence[tuple[float, int]]
"""Time and step of each loss line."""


def attempts(events: Sequence[Event]) -> Iterator[list[Event]]:
    """Split the events by training attempt; samples come from another file, so all are sorted by time."""
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
    """Return (time, step) of each loss line."""
    return [(event["t"], event["step"]) for event in attempt if event["event"] == "train"]


def samples_of(attempt: Sequence[Event], log: Log) -> list[Event]:
    """Return the samples between the first and the last logged step."""
    if not log:
        return []
    return [event for event in attempt if event["event"] == "sample" and log[0][0] <= event["t"] <= log[-1][0]]


def step_at(log: Log, t: float) -> tuple[float, float, float]:
    """Return the last step logged before ``t``, the interpolated one, and the next one logged."""
    number = bisect_right(log, t, key=lambda entry: entry[0])
    before, after = log[max(number - 1, 0)], log[min(number, len(log) - 1)]
    share = (t - before[0]) / (after[0] - before[0]) if after[0] > before[0] else 0.0
    return float(before[1]), before[1] + share * (after[1] - before[1]), float(after[1])
