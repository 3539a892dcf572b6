"""The back-test: every recorded run foretold from the others of its job and kind of link; the bands and the page's table that follow.

``python -m tests.unit.back_test`` writes both: `microcluster/planning/link_kinds.toml`, and the table of docs/cost.md.
"""

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass
from statistics import fmean, median
from typing import Any

from agent import step_time_model
from docs.tools.pages import ROOT, with_table
from microcluster.core.catalog.gpus import GPUS
from microcluster.planning.recorded_runs import KINDS, LinkKind, compute_s, document

COST, BEGIN = ROOT / "docs" / "cost.md", "<!-- from here: python -m tests.unit.back_test -->"
WRITTEN_BY = "# Written by `python -m tests.unit.back_test` from `recorded_runs.toml`.\n"
PLANNED = sorted({model for gpu in GPUS.values() for model, _ in gpu.seconds})
OTHERS = "other programs"
"""The jobs that no GPU of the catalog was timed with: no stack is foretold by them."""
HEAD = [
    "| job | link | runs | line, Gb/s | mean error | worst error | band of a step | runs within it |",
    "|---|---|---|---|---|---|---|---|",
]
ENOUGH = 19
"""Runs from which on the extremes of a kind hold nine in ten further runs: of n runs, they leave out 2 / (n + 1)."""


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


def recorded_rows() -> list[dict[str, Any]]:
    """Return all rows, each with the values of its group."""
    return [{**group, **row} for group in document()["group"] for row in group["runs"]]


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


def kinds_of(job: str) -> list[LinkKind]:
    """Return the kinds of link on which a job was recorded often enough to be foretold, the most frequent first."""
    known = back_test([run for run in map(explained, recorded_rows()) if run])
    ratios = {run: run.step_s / foretold_s for run, foretold_s in known.items() if run.job == job}
    found = []
    for link in dict.fromkeys(run.link for run in ratios):
        runs = [run for run in ratios if run.link == link]
        # A few runs cannot tell how far the next one may be off: they have the band of all runs of the job.
        low, high = band(ratios[run] for run in (runs if len(runs) >= ENOUGH else ratios))
        line_mbps, ports = median(run.line_mbps for run in runs), sorted({run.port_mbps for run in runs} - {None})
        found.append(LinkKind(job, link, line_mbps, low, high, len(runs), ports, max(run.nodes for run in runs)))
    return sorted(found, key=lambda kind: -kind.runs)


def kinds() -> str:
    """Return the file with the kinds of link."""
    found = [kind for job in PLANNED for kind in kinds_of(job)]
    rows = ["\n".join(f"{key} = {value!r}".replace("'", '"') for key, value in asdict(kind).items()) for kind in found]
    return WRITTEN_BY + "".join(f"\n[[kind]]\n{row}\n" for row in rows)


def cost() -> str:
    """Return the page of costs with the back-test."""
    rows: dict[tuple[str, str], dict[RecordedRun, float]] = {}
    for run, foretold_s in back_test([run for run in map(explained, recorded_rows()) if run]).items():
        rows.setdefault((run.job if run.job in PLANNED else OTHERS, run.link), {})[run] = foretold_s
    return with_table(COST, "\n".join([*HEAD, *(_row(*row, rows[row]) for row in rows)]), BEGIN)


def _row(job: str, link: str, foretold: Mapping[RecordedRun, float]) -> str:
    errors = [abs(seconds / run.step_s - 1) for run, seconds in foretold.items()]
    ratios = [run.step_s / seconds for run, seconds in foretold.items()]
    kinds = [kind for kind in kinds_of(job) if kind.name == link]
    low, high = (kinds[0].low, kinds[0].high) if kinds else band(ratios)
    line = f"{kinds[0].line_mbps / 1000:.3g}" if kinds else "by program"
    inside = sum(low <= ratio <= high for ratio in ratios)
    return (
        f"| {job} | {link} | {len(ratios)} | {line} | {fmean(errors):.1%} | {max(errors):.1%} "
        f"| {low - 1:+.0%} to {high - 1:+.0%} | {inside} |"
    )


if __name__ == "__main__":
    KINDS.write_text(kinds())
    COST.write_text(cost())
