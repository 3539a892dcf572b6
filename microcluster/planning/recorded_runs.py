"""What recorded runs tell: how fast their links were, how well the law foretells one from the others, and the band that follows. Pure.

The rows are in `recorded_runs.toml`. The law is that of `agent.step_time_model`: with the line rate that fits a kind of link, it gives
the seconds of a step on other cards, other ranks and another batch.
"""

import math
import tomllib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

from agent import step_time_model
from core.catalog.gpus import GPUS, MEASURED_UNITS
from microcluster.planning.run_cost import Span

ROWS = Path(__file__).with_suffix(".toml")
EFFICIENCY = {1: 1.0, 2: 0.965}
"""By the GPUs of a node: the published scaling is 1.93 on two."""
ENOUGH = 19
"""Runs from which on the extremes of a kind hold nine in ten further runs: of n runs, they leave out 2 / (n + 1)."""
SAME_LINK = 1.3
"""A link is of a kind whose line rate it misses by less than this factor; recorded ones of a kind miss theirs by up to 1.24."""


@dataclass(frozen=True)
class RecordedRun:
    """A row of `recorded_runs.toml` whose step the law can explain.

    Attributes:
        port_mbps: what was ordered; None where nobody wrote it down.
        compute_s: seconds of a step within one machine.
        wire_bytes: what each network card sends in a step.
        line_mbps: the line rate at which the law gives the recorded step.
    """

    source: str
    job: str
    link: str
    nodes: int
    port_mbps: int | None
    step_s: float
    compute_s: float
    wire_bytes: float
    line_mbps: float


@dataclass(frozen=True)
class LinkKind:
    """A kind of link that runs of a job were recorded on.

    Attributes:
        line_mbps: the median of the rates that its runs imply.
        low, high: the limits of the band: recorded over foretold seconds of a step.
        ports: of which speeds such a link was ordered, in Mb/s.
        nodes: of the largest run.
    """

    name: str
    line_mbps: float
    low: float
    high: float
    runs: int
    ports: frozenset[int | None]
    nodes: int

    def step_s(self, compute_s: float, wire_bytes: float, nodes: int) -> Span:
        """Return the seconds of a step with the band; on more machines than any recorded run had, a lower limit."""
        usual = step_time_model.step_s(compute_s, wire_bytes, step_time_model.bytes_per_s(self.line_mbps))
        longest = usual * self.high if nodes <= self.nodes else math.inf
        return Span(round(usual * self.low, 4), round(usual, 4), round(longest, 4))


@cache
def document() -> Mapping[str, Any]:
    """Return what `recorded_runs.toml` holds."""
    return tomllib.loads(ROWS.read_text())


def recorded_rows() -> list[dict[str, Any]]:
    """Return all rows, each with the values of its group."""
    return [{**group, **row} for group in document()["group"] for row in group["runs"]]


def compute_s(gpu: str, model: str, precision: str, batch: int, gpus: int) -> float | None:
    """Return the seconds in which so many GPUs of a machine compute a step; None for what was never measured."""
    whole = GPUS[gpu].seconds.get((model, precision)) if gpu in GPUS else None
    efficiency = EFFICIENCY.get(gpus)
    return None if whole is None or efficiency is None else whole * batch / MEASURED_UNITS / efficiency


def explained(row: Mapping[str, Any]) -> RecordedRun | None:
    """Return a row with what the law makes of it; None without a pace, a link, or seconds within one machine."""
    job, ranks, nodes = row["job"], row["ranks"], row["nodes"]
    card = row.get("gpu", ""), job, row.get("precision", ""), row.get("batch", 0)
    alone_s = row.get("alone_s") or compute_s(*card, math.ceil(ranks / nodes))
    if not alone_s or "step_s" not in row or "link" not in row:
        return None
    volume = step_time_model.ring_bytes(row["gradient_mb"] * 1e6, ranks, nodes)
    # A step that was faster than within one machine did not wait for its link.
    line_mbps = step_time_model.line_mbps(max(row["step_s"], alone_s), alone_s, volume)
    of = row["source"], job, row["link"], nodes, row.get("port_mbps")
    return RecordedRun(*of, row["step_s"], alone_s, volume, line_mbps)


def back_test(runs: Collection[RecordedRun]) -> dict[RecordedRun, float]:
    """Return each run's step by the law on the median line of the others of its job and link; one that is alone has none."""
    found = {}
    for run in runs:
        others = [one.line_mbps for one in runs if one is not run and (one.job, one.link) == (run.job, run.link)]
        if others:
            line = step_time_model.bytes_per_s(median(others))
            found[run] = step_time_model.step_s(run.compute_s, run.wire_bytes, line)
    return found


def band(ratios: Iterable[float]) -> tuple[float, float]:
    """Return the limits that the next run of a kind keeps with nine in ten, in whole percents, rounded outward.

    Of n runs, the next one is below the k-th with k / (n + 1), and as often above the k-th from the other end.
    """
    known = sorted(ratios)
    outside = max((len(known) + 1) // (ENOUGH + 1), 1)
    return math.floor(known[outside - 1] * 100) / 100, math.ceil(known[-outside] * 100) / 100


@cache
def link_kinds(job: str) -> tuple[LinkKind, ...]:
    """Return the kinds of link on which a job was recorded often enough to be foretold, the most frequent first."""
    known = back_test([run for run in map(explained, recorded_rows()) if run])
    ratios = {run: run.step_s / foretold_s for run, foretold_s in known.items() if run.job == job}
    found = []
    for link in dict.fromkeys(run.link for run in ratios):
        runs = [run for run in ratios if run.link == link]
        # A few runs cannot tell how far the next one may be off: they have the band of all runs of the job.
        low, high = band(ratios[run] for run in (runs if len(runs) >= ENOUGH else ratios))
        line_mbps, ports = median(run.line_mbps for run in runs), frozenset(run.port_mbps for run in runs)
        found.append(LinkKind(link, line_mbps, low, high, len(runs), ports, max(run.nodes for run in runs)))
    return tuple(sorted(found, key=lambda kind: -kind.runs))


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
