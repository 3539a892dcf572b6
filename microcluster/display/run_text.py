"""A run in lines of text, for status, watch, logs and report; pure."""

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from agent.formats.logs.ranks import TAG
from agent.run.document import Metric
from microcluster.accounts.registry import account_of
from microcluster.analysis.failure_hints import next_step
from microcluster.analysis.run_state import Outcome
from microcluster.core.plain_text import count, duration, one_line
from microcluster.jobs.cluster_facts import ClusterFacts
from microcluster.jobs.run_spec import RunFolder
from microcluster.planning.prediction import links_by_kind, over_all
from microcluster.planning.run_cost import CENT, HOUR_S, Cost, Span, exactly, rental_hours, started_hours_cost

MOST_STEPS = 12
"""Most checkpoints that are listed; others are only counted."""
MUCH_SLOWER = 0.3
"""Slowdown against the prediction from which a pace is a warning, as it is an alarm on the machines."""
WANDB = "W&B run"
RANK = r"rank \1: "
"""Replacement for the tag that mpirun puts before each line of a rank."""
NOBODY_PAYS = " (emulated, nobody pays)"
EMULATED = "emulated on this computer: nobody pays; GPU use and network speed are not those of a real {} account"


def alarm_text(alarm: Mapping[str, Any], cost: Cost) -> str:
    """Return the alarm's text; dollars of an emulated account are marked as not paid."""
    return alarm["text"] + (NOBODY_PAYS if cost.emulated and "$" in alarm["text"] else "")


def trouble(outcome: Outcome, stack: str) -> list[str]:
    """Return the cause in one sentence, then the lines of the log that explain it, then the next command."""
    ending = outcome.state + (f": {outcome.reason.rstrip('.')}" if outcome.reason else "")
    if outcome.state == "stopped":  # Who stopped it is said only of a guard; a person knows.
        ending = f"was {outcome.reason or 'stopped'}"
    cause = f" ({outcome.cause})" if outcome.cause else ""
    lines = [f"  {TAG.sub(RANK, one_line(line))}" for line in outcome.last_lines]
    if lines:
        lines.insert(0, "Last lines of the log:")
    return [f"The job {ending}{cause}.", *lines, f"Next: {next_step(outcome, stack)}."]


def left_out(count: int) -> str:
    """Return the sentence on records that could not be read."""
    return f"lines of the run's records that could not be read, and are left out: {count}"


def headline(outcome: Outcome) -> str:
    """Return the state of the run in one line."""
    so_far = "an unknown time" if outcome.phase_s is None else duration(outcome.phase_s)
    if outcome.state == "preparing":
        doing = f"; {outcome.doing}" if outcome.doing else ""
        return f"{outcome.phase or 'preparing'} for {so_far}{doing}"
    if outcome.state == "running" and outcome.step is None:
        return f"running, no {outcome.unit} yet after {so_far}"
    done = [] if outcome.step is None else [steps(outcome)]
    return ", ".join([outcome.state, *done, *losses(outcome), *pace(outcome)])


def steps(outcome: Outcome) -> str:
    """Return the steps done."""
    return f"{outcome.unit} {_done(outcome)}"


def losses(outcome: Outcome) -> Iterator[str]:
    """Yield losses and metrics, as far as they are known."""
    for name, value in (("loss", outcome.train_loss), ("validation loss", outcome.validation_loss)):
        if value is not None:
            yield f"{name} {_loss(value)}"
    yield from _metrics(outcome)


def _loss(value: float | str) -> str:
    """Return a loss with the digits that a person compares; one that is no number is a word."""
    return str(round(value, 4)) if isinstance(value, float) else str(value)


def _metrics(outcome: Outcome) -> list[str]:
    """Return the latest metrics."""
    return [f"{one_line(name)} {float(value):.4g}" for name, value in outcome.metrics.items()]


def pace(outcome: Outcome) -> Iterator[str]:
    """Yield seconds per step and time left, as far as they are known."""
    if outcome.seconds_per_step is not None:
        beside = "" if outcome.predicted_s is None else f" ({outcome.predicted_s:.3f} predicted)"
        yield f"{_speed(outcome)}{beside}"
    if outcome.eta_s is not None:
        yield f"{duration(outcome.eta_s)} left"


def _speed(outcome: Outcome) -> str:
    return f"{outcome.seconds_per_step:.3f} s/{outcome.unit}"


def _against_prediction(outcome: Outcome) -> str:
    slower = outcome.seconds_per_step / outcome.predicted_s - 1
    return f"{abs(slower):.0%} {'slower' if slower > 0 else 'faster'}"


def outlook(outcome: Outcome, cost: Cost) -> str | None:
    """Return the measured pace beside the predicted one, by cause, and what the rest will cost; None before enough steps."""
    measured, predicted, left_s = outcome.seconds_per_step, outcome.predicted_s, outcome.eta_s
    if not outcome.settled or not measured or left_s is None:
        return None
    takes = f"a {outcome.unit} takes {measured:.3f} s"
    rest = f"what is left takes {_time_and_cost(left_s, cost)}"
    if not predicted:
        return f"pace: {takes}; {rest}"
    causes = ", ".join(f"{name} {now:.3f} s of {before:.3f}" for name, (before, now) in outcome.causes.items())
    by_cause = f" ({causes})" if causes else ""
    sentence = f"{takes}, {_against_prediction(outcome)} than the {predicted:.3f} s predicted{by_cause}; {rest}"
    if measured / predicted - 1 < MUCH_SLOWER:
        return f"pace: {sentence}"
    longer = _time_and_cost(left_s * (1 - predicted / measured), cost)
    return f"warning: {sentence}, of which {longer} more than predicted"


def _time_and_cost(seconds: float, cost: Cost) -> str:
    """Return so much time with its price; a started hour is not rounded up, for it may be under way."""
    if cost.per_hour is None:
        return duration(seconds)
    amount = (cost.per_hour * Decimal(str(seconds)) / HOUR_S).quantize(CENT)
    return f"{duration(seconds)} and {cost.amount(amount)}{NOBODY_PAYS if cost.emulated else ''}"


def copy(outcome: Outcome) -> str | None:
    """Return the run's replica on another machine or on the drive, in words."""
    replica = outcome.copied
    if not replica:
        return None
    best = len(replica["best"])
    models = f" and {count(best, 'best model')}" if best else ""
    return f"copied to {replica['to']}: {outcome.unit} {replica['step']}{models}, {duration(replica['lag_s'])} after it was written"


def remark(outcome: Outcome, stack: str) -> str | None:
    """Return a warning for a person before the machines go, with the next command."""
    return outcome.remark and f"{outcome.remark}. Fetch all that it has saved: fab fetch --everything --stack {stack}"


def report_rows(cluster: ClusterFacts, outcome: Outcome, cost: Cost) -> list[tuple[str, str]]:
    """Return the known facts of a run by name."""
    document = RunFolder(cluster).document
    reason = f" ({outcome.reason})" if outcome.reason else ""
    losses = [_loss(one["loss"]) for one in outcome.evaluations]
    rows = {
        "run": f"{cluster.run} on stack {cluster.stack}: {outcome.state}{reason}",
        "trained by": outcome.trainer,
        WANDB: outcome.wandb_url,
        "model": document.program.title,
        "where": _where(cluster),
        "hardware": EMULATED.format(account_of(cluster.account).title) if cost.emulated else None,
        f"{outcome.unit}s": _done(outcome) if outcome.step is not None or outcome.max_steps else None,
        "validation loss": f"{losses[0]} at first, {losses[-1]} at last" if losses else None,
        "evaluation": _evaluated(document.logs.metrics, outcome),
        "metrics": ", ".join(_metrics(outcome)),
        "pace": None if outcome.seconds_per_step is None else _speed(outcome),
        "predicted": _predicted(outcome),
        "planned": _planned(cluster),
        "throughput": _throughput(outcome),
        "checkpoints": _checkpoints(outcome),
        "note": remark(outcome, cluster.stack),
        "best models": ", ".join(outcome.best),
        "newest copy": copy(outcome),
        "cost": str(cost),
    }
    return [(name, value) for name, value in rows.items() if value]


def _where(cluster: ClusterFacts) -> str:
    # The addresses of nodes that a queue grants are the run's own matter.
    places = [f"{h.name} ({h.private_address})" if h.private_address else h.name for h in cluster.hosts]
    gpus = f"; {cluster.slots}x {cluster.gpu} each" if cluster.gpu else ""
    return f"{count(len(places) * cluster.slots, 'rank')} on {', '.join(places)}{gpus}"


def _checkpoints(outcome: Outcome) -> str | None:
    steps = outcome.checkpoints
    if len(steps) > MOST_STEPS:
        return f"{len(steps)}, from step {min(steps)} to {max(steps)}"
    return ", ".join(map(str, steps)) or ("none" if outcome.saves else None)


def _done(outcome: Outcome) -> str:
    """Return the steps done."""
    step = "none" if outcome.step is None else outcome.step
    within = "" if outcome.batch is None else f", batch {outcome.batch} of the next"
    return (f"{step} of {outcome.max_steps}" if outcome.max_steps else str(step)) + within


def _predicted(outcome: Outcome) -> str | None:
    if outcome.predicted_s is None:
        return None
    text = f"{outcome.predicted_s:.3f} s/step {outcome.predicted_source}"
    if outcome.seconds_per_step is None:
        return text
    return f"{text}; the run is {_against_prediction(outcome)}"


def _throughput(outcome: Outcome) -> str | None:
    """Return objects per second; the program's own average includes evaluations and checkpoints."""
    if not outcome.objects_per_second:
        return None
    return f"{outcome.objects_per_second:.0f} objects/s over all ranks, evaluations and checkpoints included"


def _planned(cluster: ClusterFacts) -> str | None:
    """Return the time and cost that were expected before renting, over all links that such a port may have."""
    job, expected = cluster.job, cluster.prediction
    workload = job.workload() if job else None
    if expected is None or expected.compute_s is None or workload is None or cluster.per_hour is None:
        return None
    links = links_by_kind(
        workload.name,
        expected.compute_s,
        expected.wire_bytes,
        nodes=len(cluster.hosts),
        port_mbps=cluster.port_speed_mbps,
    )
    before = Span(*account_of(cluster.account).hours_before(workload))
    hours = rental_hours(exactly(job.max_steps), over_all(links, expected.compute_s), before)
    dollars = started_hours_cost(hours, Decimal(str(cluster.per_hour)))
    takes = f"{hours.text('{:.1f}')} h and {dollars.text('${:,.0f}')}"
    return f"{takes} for {count(job.max_steps, 'step')}, with preparation"


def _evaluated(metrics: Sequence[Metric], outcome: Outcome) -> str | None:
    """Return the metrics of the last evaluations."""
    texts = []
    for metric in metrics:
        values = [one[metric.name] for one in outcome.evaluations if metric.name in one]
        if values:
            texts.append(f"last {metric.label} {values[-1]}" + (f" ({metric.note})" if metric.note else ""))
    return ", ".join([count(len(outcome.evaluations), "evaluation"), *texts]) if texts else None
