"""Forecasts from recorded runs: the band of a step on each kind of link, and the samples to a loss. Pure.

The rows are in `recorded_runs.toml`; the kinds follow from them by the back-test in the tests, which writes `link_kinds.toml`. The law is
that of `agent.step_time_model`: with the line rate that fits a kind of link, it gives the seconds of a step on other cards, other ranks
and another batch.
"""

import math
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

from agent import step_time_model
from microcluster.core.catalog.gpus import GPUS, MEASURED_UNITS
from microcluster.planning.run_cost import Span

RUNS = Path(__file__).with_suffix(".toml")
KINDS = RUNS.with_name("link_kinds.toml")
EFFICIENCY = {1: 1.0, 2: 0.965}
"""Scaling efficiency by the GPUs of a node; published is a speed-up of 1.93 on two."""
SAME_LINK = 1.3
"""A link is of a kind whose line rate it misses by less than this factor; recorded ones of a kind miss theirs by up to 1.24."""


@dataclass(frozen=True)
class LinkKind:
    """A kind of link that runs of a job were recorded on.

    Attributes:
        line_mbps: the median of the rates that its runs imply.
        low, high: the limits of the band: recorded over foretold seconds of a step.
        ports: of which speeds such a link was ordered, in Mb/s.
        nodes: of the largest run.
    """

    job: str
    name: str
    line_mbps: float
    low: float
    high: float
    runs: int
    ports: Sequence[int]
    nodes: int

    def step_s(self, compute_s: float, wire_bytes: float, nodes: int) -> Span:
        """Return the seconds of a step with the band; on more machines than any recorded run had, a lower limit."""
        usual = step_time_model.step_s(compute_s, wire_bytes, step_time_model.bytes_per_s(self.line_mbps))
        longest = usual * self.high if nodes <= self.nodes else math.inf
        return Span(round(usual * self.low, 4), round(usual, 4), round(longest, 4))


@cache
def document() -> Mapping[str, Any]:
    """Return the content of `recorded_runs.toml`."""
    return tomllib.loads(RUNS.read_text())


def compute_s(gpu: str, model: str, precision: str, batch: int, gpus: int) -> float | None:
    """Return the seconds in which so many GPUs of a machine compute a step; None for what was never measured."""
    whole = GPUS[gpu].seconds.get((model, precision)) if gpu in GPUS else None
    efficiency = EFFICIENCY.get(gpus)
    return None if whole is None or efficiency is None else whole * batch / MEASURED_UNITS / efficiency


@cache
def link_kinds(job: str) -> tuple[LinkKind, ...]:
    """Return the kinds of link on which a job was recorded often enough to be foretold, the most frequent first."""
    return tuple(LinkKind(**row) for row in tomllib.loads(KINDS.read_text())["kind"] if row["job"] == job)


def kind_of_link(kinds: Iterable[LinkKind], line_mbps: float) -> LinkKind | None:
    """Return the kind that a link of so many Mb/s is of, or None where nothing like it was recorded."""
    return next((kind for kind in kinds if 1 / SAME_LINK < line_mbps / kind.line_mbps < SAME_LINK), None)


def samples_to_loss(job: str, samples_a_step: float, loss: float) -> Span | None:
    """Return the samples that a job takes to a validation loss; None for a job, a batch or a loss that was not recorded.

    Between two evaluations of the curve the steps are interpolated; the limits are the other runs' samples over those of the curve.
    """
    for curve in document()["curve"]:
        batches = {curve["pairs"], *(pairs for pairs, _, _ in curve["others"])}
        along = _on_curve(curve, loss)
        if curve["job"] == job and samples_a_step in batches and along:
            reached = ((pairs * steps, _on_curve(curve, level)) for pairs, steps, level in curve["others"])
            ratios = [1.0, *(samples / on_curve for samples, on_curve in reached if on_curve)]
            return Span(along * min(ratios), along * median(ratios), along * max(ratios))
    return None


def _on_curve(curve: Mapping[str, Any], loss: float) -> float | None:
    points = curve["points"]
    for (step, before), (later, after) in zip(points, points[1:], strict=False):
        if after <= loss <= before:
            return curve["pairs"] * (step + (later - step) * (before - loss) / (before - after))
    return None
