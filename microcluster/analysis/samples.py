"""GPU use and bytes of each network card, step by step, from the machines' samples. Pure."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from microcluster.analysis.records import Event, Point, attempts, named

COUNTERS = {"in": "rx_bytes", "out": "tx_bytes"}
MEGABIT_BYTES = 125_000.0
MOST_NODES = 16
"""Machines that are told apart in one chart or sentence."""


class Attempt:
    """One attempt of a training: time and step of each loss line, and the samples between the first and the last of them."""

    def __init__(self, events: Sequence[Event]) -> None:
        self.log = [(event["t"], event["step"]) for event in named(events, "train")]
        begin, end = (self.log[0][0], self.log[-1][0]) if self.log else (0, -1)
        self.samples = [event for event in named(events, "sample") if begin <= event["t"] <= end]

    def step_at(self, t: float) -> float:
        """Return the step at a time, interpolated between the lines of the log."""
        number = bisect_right(self.log, t, key=lambda entry: entry[0])
        (t_before, before), (t_after, after) = self.log[max(number - 1, 0)], self.log[min(number, len(self.log) - 1)]
        share = (t - t_before) / (t_after - t_before) if t_after > t_before else 0.0
        return before + share * (after - before)

    def counted(self) -> dict[str, list[Event]]:
        """Return the samples with counters of a network card, by node."""
        by_node: dict[str, list[Event]] = {}
        for sample in self.samples:
            if all(counter in sample for counter in COUNTERS.values()):
                by_node.setdefault(sample["node"], []).append(sample)
        return by_node


def gpu_use(events: Sequence[Event]) -> dict[str, list[Point]]:
    """Return percent by step for each machine, the mean of its GPUs; of very many those that are used least."""
    by_node: dict[str, list[Point]] = {}
    for attempt in map(Attempt, attempts(events)):
        for one in attempt.samples:
            if one.get("gpus"):
                point = round(attempt.step_at(one["t"])), round(sum(one["gpus"]) / len(one["gpus"]), 1)
                by_node.setdefault(one["node"], []).append(point)
    least = sorted(by_node, key=lambda node: sum(percent for _, percent in by_node[node]) / len(by_node[node]))[
        :MOST_NODES
    ]
    return {node: points for node, points in by_node.items() if node in least}


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
    """Bytes per step of every network card in each direction."""

    cards: tuple[Card, ...]

    @property
    def usual(self) -> Card:
        """The lower median: in a ring all cards move the same, but two of them also copied checkpoints."""
        return sorted(self.cards, key=lambda card: card.bytes_per_step)[(len(self.cards) - 1) // 2]


def traffic(events: Sequence[Event]) -> Traffic | None:
    """Return the traffic of the last attempt with enough samples, or None."""
    for attempt in reversed(attempts(events)):
        cards = tuple(_cards(Attempt(attempt)))
        if cards:
            return Traffic(cards)
    return None


def link_rates(events: Sequence[Event], node: str) -> dict[str, list[Point]]:
    """Return Mb/s of a node's card by step, received and sent, of all attempts."""
    rates: dict[str, list[Point]] = {"received": [], "sent": []}
    for attempt in map(Attempt, attempts(events)):
        for before, after in pairwise(attempt.counted().get(node, [])):
            at = round(attempt.step_at((before["t"] + after["t"]) / 2))
            for points, counter in zip(rates.values(), COUNTERS.values(), strict=True):
                points.append((at, round(_mbps(before, after, counter), 3)))
    return rates


def _cards(attempt: Attempt) -> Iterator[Card]:
    for node, samples in sorted(attempt.counted().items()):
        first, last = samples[0], samples[-1]
        steps = attempt.step_at(last["t"]) - attempt.step_at(first["t"])
        if steps < 1:  # Too few log lines or samples.
            continue
        for direction, counter in COUNTERS.items():
            if any(after[counter] < before[counter] for before, after in pairwise(samples)):
                continue  # The machine was rebooted: its counters began again.
            moved, seconds = last[counter] - first[counter], last["t"] - first["t"]
            peak = max(_mbps(before, after, counter) for before, after in pairwise(samples))
            yield Card(node, direction, moved, seconds, steps, peak)


def _mbps(before: Event, after: Event, counter: str) -> float:
    seconds = after["t"] - before["t"]
    return max(after[counter] - before[counter], 0) / seconds / MEGABIT_BYTES if seconds > 0 else 0.0
