"""GPU use, from the machines' samples. Pure."""

from collections.abc import Iterator, Sequence

from microcluster.analysis.timeline import Event, attempts, log_of, samples_of, step_at

Point = tuple[int, float]


def by_step(events: Sequence[Event]) -> dict[str, list[Point]]:
    """Return percent by step: the mean of all GPUs, and with several nodes that of the least used one."""
    mean, least = [], []
    nodes = set()
    for attempt in attempts(events):
        log = log_of(attempt)
        for one in _rounds(samples_of(attempt, log)):
            nodes |= {event["node"] for event in one}
            used = [sum(event["gpus"]) / len(event["gpus"]) for event in one]
            at = round(step_at(log, one[-1]["t"])[1])
            mean.append((at, round(sum(used) / len(used), 1)))
            least.append((at, round(min(used), 1)))
    return {"mean of all GPUs": mean} | ({"node that is used least": least} if len(nodes) > 1 else {})


def _rounds(samples: Sequence[Event]) -> Iterator[list[Event]]:
    """Group samples by round: one of each node."""
    current: dict[str, Event] = {}
    for sample in samples:
        if not sample.get("gpus"):
            continue
        if sample["node"] in current:
            yield list(current.values())
            current = {}
        current[sample["node"]] = sample
    if current:
        yield list(current.values())
