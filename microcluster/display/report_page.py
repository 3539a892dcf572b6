"""The report of a run as one HTML page: curves are inline SVG, without scripts, fonts or images from elsewhere."""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from operator import itemgetter
from pathlib import Path
from typing import Any

import pygal
from pygal.style import CleanStyle
from rich.filesize import decimal

from agent.run.document import Metric
from microcluster.analysis import bottleneck, run_questions, samples
from microcluster.analysis.records import Curves, rewound
from microcluster.analysis.run_questions import Answer
from microcluster.analysis.run_state import Outcome
from microcluster.core.plain_text import printable
from microcluster.display import preflight_table, run_text
from microcluster.jobs.cluster_facts import ClusterFacts
from microcluster.jobs.rendering import render_page
from microcluster.jobs.run_spec import RunFolder
from microcluster.planning.run_cost import Cost
from microcluster.remote.report_records import Checkpoint, Records

BILL_KEYS = ("host", "what", "from", "to", "per_hour", "cost")
STYLE = CleanStyle(
    font_family="system-ui, sans-serif",
    background="transparent",
    plot_background="transparent",
    foreground="var(--pale)",
    foreground_strong="var(--ink)",
    foreground_subtle="var(--pale)",
    guide_stroke_color="var(--line)",
    major_guide_stroke_color="var(--line)",
    guide_stroke_dasharray="0",
    major_guide_stroke_dasharray="0",
    label_font_size=11,
    major_label_font_size=11,
    title_font_size=12,
    legend_font_size=12,
    colors=tuple(f"var(--line-{number % 8 + 1})" for number in range(64)),
)
"""The colors are CSS variables of the page, which has a light and a dark scheme."""
MOST_LABELS = 8
"""Most labels below an axis; more would overlap."""
MOST_POINTS = 400
"""The chart has no room for more; a curve of 50,000 steps has 500."""


def page(  # noqa: PLR0913, PLR0917 - the parts of the page
    cluster: ClusterFacts,
    outcome: Outcome,
    records: Records,
    found: Curves,
    answers: Sequence[Answer],
    cost: Cost,
    bill: Sequence[Mapping[str, Any]],
) -> str:
    """Return the page, which needs no network."""
    return render_page(
        "report.html.j2",
        title=f"Run {cluster.run} of stack {cluster.stack}",
        state=outcome.state,
        read=f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        trouble=run_text.trouble(outcome, cluster.stack) if outcome.reason else [],
        facts=run_text.report_rows(cluster, outcome, cost),
        answers=answers,
        emulated=", emulated" if cost.emulated else "",
        charts=_charts(cluster, outcome, records, found, emulated=cost.emulated),
        network=bottleneck.rows(samples.traffic(records.events), outcome.link),
        bill=[[row[key] for key in BILL_KEYS] for row in bill],
        checkpoints=list(map(_checkpoint, records.checkpoints)),
        files=[(path, decimal(size)) for path, size in records.files],
        checks=preflight_table.rows(outcome.checks),
        config=records.config,
    )


def _charts(
    cluster: ClusterFacts, outcome: Outcome, records: Records, found: Curves, *, emulated: bool
) -> Iterator[tuple[str, str]]:
    """Draw the charts that have data, each with its caption; the captions of emulated figures say so."""
    unit, label = outcome.unit, ", emulated" if emulated else ""
    yield f"Loss by {unit}", curve("loss", {"training": found.train, "validation": found.validation})
    known = {metric.name: metric for metric in RunFolder(cluster).document.logs.metrics}
    for name, points in found.metrics.items():
        metric = known.get(name, Metric(name, name))
        note = f", {metric.note}" if metric.note else ""
        yield f"{metric.label} by {unit}{note}", curve(metric.label, {metric.label: points}, from_zero=True)
    rates, source = rewound(records.learning_rate), "as the trainer recorded it"
    if not rates and outcome.step:
        rates = run_questions.planned_rates(cluster.job.planned_rate, outcome.step)
        source = "derived from its policy's formula"
    if rates:
        drawn = curve("learning rate", {"learning rate": rates}, from_zero=True)
        yield f"Learning rate by {unit}, {source}", drawn
    yield f"Seconds per {unit}", curve(f"s/{unit}", {f"seconds per {unit}": found.pace}, from_zero=True)
    used, node = samples.gpu_use(records.events), cluster.hosts[0].name
    if any(used.values()):
        yield f"GPU use by {unit}, percent{label}", curve("%", used, from_zero=True)
    carried = samples.link_rates(records.events, node)
    if any(carried.values()):
        caption = f"Private network of {node}, Mb/s by its counters{label}"
        yield caption, curve("Mb/s", carried, from_zero=True)


def _checkpoint(one: Checkpoint) -> tuple[str, ...]:
    written = f"{datetime.fromtimestamp(one.written, UTC):%Y-%m-%d %H:%M:%S}"
    kind = "best model" if one.best else "regular"
    state = f"suspected: {one.flaw}" if one.flaw else "whole"
    return str(one.step), one.name, kind, decimal(one.size), written, state


def curve(
    name: str, lines: Mapping[str, Sequence[tuple[float, float]]], *, from_zero: bool = False, along: str = "step"
) -> str:
    """Draw named lines of (step, value) as SVG text; ``from_zero`` begins the axes at zero."""
    parts = {title: list(thinned(points)) for title, points in lines.items()}
    return _drawn(
        pygal.XY, name, parts, stroke_style={"width": 2}, show_dots=False, include_x_axis=from_zero, x_title=along
    )


def bars(name: str, of: Sequence[str], heights: Mapping[str, Sequence[float]]) -> str:
    """Draw bars as SVG text, each of the named parts above the other; ``of`` says what each bar is of."""
    every = -(-len(of) // MOST_LABELS)
    return _drawn(
        pygal.StackedBar,
        name,
        heights,
        x_labels=of,
        x_labels_major_every=every,
        show_minor_x_labels=every == 1,
        truncate_label=-1,
    )


def _drawn(kind: type[pygal.Graph], name: str, parts: Mapping[str, Sequence[Any]], **look: Any) -> str:
    chart = kind(
        js=[],
        disable_xml_declaration=True,
        style=STYLE,
        width=720,
        height=270,
        max_scale=8,  # More labels on an axis would overlap.
        y_title=printable(name),
        legend_at_bottom=len(parts) > 1,
        show_legend=len(parts) > 1,
        no_data_text="nothing yet",
        **look,
    )
    for title, values in parts.items():
        chart.add(printable(title), values)
    # The library writes its settings into a script even where nothing reads them.
    return re.sub(r"<script.*?</script>", "", chart.render(is_unicode=True), flags=re.DOTALL)


def figures(path: Path, title: str, source: str, **parts: object) -> None:
    """Write a page of sentences (``told``), ``charts`` and ``tables``, each of the latter with its caption."""
    path.parent.mkdir(parents=True, exist_ok=True)
    read = f"{source}, at {datetime.now(UTC):%Y-%m-%d %H:%M}."
    path.write_text(render_page("figures.html.j2", title=title, read=read, **parts))


def thinned(points: Sequence[tuple[float, float]]) -> Sequence[tuple[float, float]]:
    """Keep both ends, and the lowest and highest point of each group, so that no peak is lost."""
    if len(points) <= MOST_POINTS:
        return points
    every = -(-2 * len(points) // MOST_POINTS)
    groups = (points[start : start + every] for start in range(0, len(points), every))
    value = itemgetter(1)
    kept = [point for group in groups for point in sorted({min(group, key=value), max(group, key=value)})]
    return [*dict.fromkeys((points[0], *kept, points[-1]))]
