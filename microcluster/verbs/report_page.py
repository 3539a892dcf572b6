"""The report of a run as one HTML page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

from rich.filesize import decimal

from microcluster.analysis import bottleneck, gpu_use, network_usage, run_questions
from microcluster.analysis.bottleneck import Link
from microcluster.analysis.run_questions import Answer, Curves
from microcluster.analysis.run_state import Outcome
from microcluster.jobs.cluster_facts import ClusterFacts
from microcluster.jobs.kind import kind_of
from microcluster.jobs.rendering import render_page
from microcluster.remote.run_export import Checkpoint, Records
from microcluster.verbs import charts, preflight_table, run_text
from microcluster.verbs.money import Cost

BILL_HEAD = ("host", "what", "from (UTC)", "to (UTC)", "per hour", "cost")
BILL_KEYS = ("host", "what", "from", "to", "per_hour", "cost")
CHECKPOINT_HEAD = ("step", "name", "kind", "size", "written (UTC)", "state")
Chart = tuple[str, str]


def page(  # noqa: PLR0913, PLR0917 - the parts of the page
    cluster: ClusterFacts,
    outcome: Outcome,
    records: Records,
    found: Curves,
    answers: Sequence[Answer],
    cost: Cost,
    bill: Sequence[Mapping[str, Any]],
    link: Link,
) -> str:
    """Return the page, which needs no network."""
    return render_page(
        "report.html.j2",
        title=f"Run {outcome.run} of stack {cluster.stack}",
        state=outcome.state,
        read=f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        trouble=run_text.trouble(outcome, cluster.stack) if outcome.reason else [],
        facts=run_text.report_rows(cluster, outcome, cost),
        answers=answers,
        emulated=", emulated" if cost.emulated else "",
        charts=_charts(cluster, outcome, records, found, emulated=cost.emulated),
        network=bottleneck.rows(network_usage.measured(records.events), link),
        bill=[BILL_HEAD, *([row[key] for key in BILL_KEYS] for row in bill)] if bill else [],
        checkpoints=[CHECKPOINT_HEAD, *map(_checkpoint, records.checkpoints)] if records.checkpoints else [],
        files=[(path, decimal(size)) for path, size in records.files],
        checks=[preflight_table.HEAD, *preflight_table.rows(outcome.checks)] if outcome.checks else [],
        config=records.config,
    )


def _charts(cluster: ClusterFacts, outcome: Outcome, records: Records, found: Curves, *, emulated: bool) -> list[Chart]:
    """Draw the charts that have data; the captions of emulated figures say so."""
    label = ", emulated" if emulated else ""
    name = cluster.hosts[0].name
    loss = {"training": found.train, "validation": found.validation}
    used, rates = gpu_use.by_step(records.events), network_usage.rates(records.events, name)
    unit = outcome.unit
    drawn = [(f"Loss by {unit}", charts.curve("loss", loss))]
    known = {metric.name: metric for metric in kind_of(cluster.job.kind if cluster.job else None).metrics}
    for metric, points in found.metrics.items():
        title, note = (known[metric].label, known[metric].note) if metric in known else (metric, "")
        caption = f"{title} by {unit}" + (f", {note}" if note else "")
        drawn.append((caption, charts.curve(title, {title: points}, from_zero=True)))
    if rate := _rate(cluster, outcome, records):
        drawn.append(rate)
    pace = {f"seconds per {unit}": found.pace}
    drawn.append((f"Seconds per {unit}", charts.curve(f"s/{unit}", pace, from_zero=True)))
    if any(used.values()):
        drawn.append((f"GPU use by {unit}, percent{label}", charts.curve("%", used, from_zero=True)))
    if any(rates.values()):
        caption = f"Private network of {name}, Mb/s by its counters{label}"
        drawn.append((caption, charts.curve("Mb/s", rates, from_zero=True)))
    return drawn


def _rate(cluster: ClusterFacts, outcome: Outcome, records: Records) -> Chart | None:
    """Draw the learning rate as the trainer recorded it, else as its policy's formula gives it."""
    recorded, source = run_questions.rewound(records.learning_rate), "as the trainer recorded it"
    if not recorded and cluster.job and outcome.step:
        policy = partial(kind_of(cluster.job.kind).learning_rate, cluster.job)
        recorded = run_questions.planned_rates(policy, outcome.step)
        source = "derived from its policy's formula"
    if not recorded:
        return None
    return f"Learning rate by {outcome.unit}, {source}", charts.curve(
        "learning rate", {"learning rate": recorded}, from_zero=True
    )


def _checkpoint(one: Checkpoint) -> tuple[str, ...]:
    written = f"{datetime.fromtimestamp(one.written, UTC):%Y-%m-%d %H:%M:%S}"
    kind = "best model" if one.best else "regular"
    return str(one.step), one.name, kind, decimal(one.size), written, f"torn: {one.flaw}" if one.flaw else "whole"
