"""What the machines' samples say, step by step: use of the GPUs, and bytes of each network card. Pure."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from microcluster.analysis.records import Event, Point

Log = Sequence[tuple[float, int]]
"""Time and step of each loss line."""
DIRECTIONS = {"in": "rx_bytes", "out": "tx_bytes"}
MEGABIT_BYTES = 125_000.0


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


def step_at(log: Log, t: float) -> float:
    """Return the step at a time, interpolated between the lines of the log."""
    number = bisect_right(log, t, key=lambda entry: entry[0])
    before, after = log[max(number - 1, 0)], log[min(number, len(log) - 1)]
    share = (t - before[0]) / (after[0] - before[0]) if after[0] > before[0] else 0.0
    return before[1] + share * (after[1] - before[1])


def gpu_use(events: Sequence[Event]) -> dict[str, list[Point]]:
    """Return percent by step: the mean of all GPUs, and with several nodes that of the least used one."""
    mean, least = [], []
    nodes = set()
    for attempt in attempts(events):
        log = log_of(attempt)
        for one in _rounds(samples_of(attempt, log)):
            nodes |= {event["node"] for event in one}
            used = [sum(event["gpus"]) / len(event["gpus"]) for event in one]
            at = round(step_at(log, one[-1]["t"]))
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


@dataclass(frozen=True)
class Card:
    """One network card in one direction, while steps were logged.

    Attributes:
        steps: between its first and last sample, interpolated between the log's lines.
        peak_mbps: the highest rate between two samples.
    """

    node: str
    direction: str
    moved_bytes: int
    seconds: float
    steps: float
    peak_mbps: float

    @property
    def bytes_per_step(self) -> float:
        return self.moved_bytes / self.steps

    @property
    def mbps(self) -> float:
        """The average, evaluations included."""
        return self.moved_bytes / self.seconds / MEGABIT_BYTES


@dataclass(frozen=True)
class Traffic:
    """Every card in each direction."""

    cards: tuple[Card, ...]

    @property
    def usual(self) -> Card:
        """The lower median: in a ring all cards move the same, but two of them also copied checkpoints."""
        return sorted(self.cards, key=lambda card: card.bytes_per_step)[(len(self.cards) - 1) // 2]


def traffic(events: Sequence[Event]) -> Traffic | None:
    """Return the traffic of the last attempt with enough samples, or None."""
    for attempt in reversed(list(attempts(events))):
        cards = tuple(_cards(attempt))
        if cards:
            return Traffic(cards)
    return None


def link_rates(events: Sequence[Event], node: str) -> dict[str, list[tuple[int, float]]]:
    """Return Mb/s of a node's card by step, received and sent, of all attempts."""
    found: dict[str, list[tuple[int, float]]] = {"received": [], "sent": []}
    for attempt in attempts(events):
        log = log_of(attempt)
        samples = [one for one in _sampled(attempt, log) if one["node"] == node]
        for before, after in pairwise(samples):
            at = round(step_at(log, (before["t"] + after["t"]) / 2))
            for name, counter in (("received", "rx_bytes"), ("sent", "tx_bytes")):
                found[name].append((at, round(_mbps(before, after, counter), 3)))
    return found


def _cards(attempt: Sequence[Event]) -> Iterator[Card]:
    log = log_of(attempt)
    samples = _sampled(attempt, log)
    for node in sorted({one["node"] for one in samples}):
        own = [one for one in samples if one["node"] == node]
        first, last = own[0], own[-1]
        steps = step_at(log, last["t"]) - step_at(log, first["t"])
        if steps < 1:  # Too few log lines or samples.
            continue
        for direction, counter in DIRECTIONS.items():
            if any(after[counter] < before[counter] for before, after in pairwise(own)):
                continue  # The machine was rebooted: its counters began again.
            yield Card(
                node,
                direction,
                last[counter] - first[counter],
                last["t"] - first["t"],
                steps,
                peak_mbps=max(_mbps(before, after, counter) for before, after in pairwise(own)),
            )


def _sampled(attempt: Sequence[Event], log: Log) -> list[Event]:
    return [event for event in samples_of(attempt, log) if "rx_bytes" in event]


def _mbps(before: Event, after: Event, counter: str) -> float:
    seconds = after["t"] - before["t"]
    return max(after[counter] - before[counter], 0) / seconds / MEGABIT_BYTES if seconds > 0 else 0.0
