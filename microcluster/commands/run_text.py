"""A run in lines of text, for status, watch, logs and report; pure."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from agent.readers.ranks import TAG
from core.plain_text import count, duration, one_line
from microcluster.accounts.registry import account_of
from microcluster.analysis.failure_hints import next_step
from microcluster.analysis.run_state import Outcome
from microcluster.commands.money import CENT, Cost
from microcluster.jobs.cluster_facts import ClusterFacts
from microcluster.jobs.run_spec import RunFolder
from microcluster.planning.costs import HOUR_S, Bill
from microcluster.planning.prediction import BAND

MOST_STEPS = 12
"""More checkpoints than these are counted, not listed."""
MUCH_SLOWER = 0.3
"""From this share on a pace is a warning, as it is an alarm on the machines."""
RANK = r"rank \1: "
"""In place of the tag that mpirun puts before each line of a rank."""
EMULATED = "emulated on this computer: nobody pays; GPU use and network speed are not those of {}"


def alarm_text(alarm: Mapping[str, Any], cost: Cost) -> str:
    """Return the alarm's text; dollars of an emulated account are marked as not paid."""
    return alarm["text"] + (" (emulated, nobody pays)" if cost.emulated and "$" in alarm["text"] else "")


def trouble(outcome: Outcome, stack: str) -> list[str]:
    """Return the cause in one sentence, then the lines of the log that explain it, then the next command."""
    why = f": {outcome.reason.rstrip('.')}" if outcome.reason else ""
    # Who stopped it is said only of a guard; a person knows.
    how = f"was {outcome.reason or 'stopped'}" if outcome.state == "stopped" else f"{outcome.state}{why}"
    cause = f" ({outcome.cause})" if outcome.cause else ""
    return [
        f"The job {how}{cause}.",
        *(["Last lines of the log:"] if outcome.last_lines else []),
        *(f"  {TAG.sub(RANK, one_line(line))}" for line in outcome.last_lines),
        f"Next: {next_step(outcome, stack)}.",
    ]


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
    return ", ".join([outcome.state, *steps(outcome), *losses(outcome), *pace(outcome)])


def steps(outcome: Outcome) -> list[str]:
    """Return the steps done, if known."""
    of = f" of {outcome.max_steps}" if outcome.max_steps else ""
    return [] if outcome.step is None else [f"{outcome.unit} {outcome.step}{of}"]


def losses(outcome: Outcome) -> list[str]:
    """Return losses and metrics, as far as they are known."""
    known = (("loss", outcome.train_loss), ("validation loss", outcome.validation_loss))
    return [f"{name} {_loss(value)}" for name, value in known if value is not None] + _metrics(outcome)


def _loss(value: float | str | None) -> str:
    """Return a loss with the digits that a person compares; one that is no number is a word."""
    return str(round(value, 4)) if isinstance(value, float) else str(value)


def _metrics(outcome: Outcome) -> list[str]:
    """Return the latest metrics."""
    return [f"{one_line(name)} {value:.4g}" for name, value in outcome.metrics.items()]


def pace(outcome: Outcome) -> list[str]:
    """Return seconds per step and time left, as far as they are known."""
    beside = "" if outcome.predicted_s is None else f" ({outcome.predicted_s:.3f} predicted)"
    speed = [] if outcome.seconds_per_step is None else [f"{outcome.seconds_per_step:.3f} s/{outcome.unit}{beside}"]
    return speed if outcome.eta_s is None else [*speed, f"{duration(outcome.eta_s)} left"]


def outlook(outcome: Outcome, cost: Cost) -> str | None:
    """Return the measured pace beside the predicted one, by cause, and what the rest will cost; None before enough steps."""
    measured, predicted, left_s = outcome.seconds_per_step, outcome.predicted_s, outcome.eta_s
    if not outcome.settled or not measured or left_s is None:
        return None
    rest = f"what is left takes {duration(left_s)}{_costs(left_s, cost)}"
    if not predicted:
        return f"pace: a {outcome.unit} takes {measured:.3f} s; {rest}"
    off = measured / predicted - 1
    how = f"{abs(off):.0%} {'slower' if off > 0 else 'faster'} than the {predicted:.3f} s predicted"
    parts = [f"{name} {now:.3f} s of {before:.3f}" for name, (before, now) in outcome.causes.items()]
    by_cause = f" ({', '.join(parts)})" if parts else ""
    said = f"a {outcome.unit} takes {measured:.3f} s, {how}{by_cause}; {rest}"
    if off < MUCH_SLOWER:
        return f"pace: {said}"
    longer_s = left_s * (1 - predicted / measured)
    return f"warning: {said}, of which {duration(longer_s)}{_costs(longer_s, cost)} more than predicted"


def _costs(seconds: float, cost: Cost) -> str:
    """Say what the machines cost for so long; a started hour is not rounded up, for it may be under way."""
    if cost.per_hour is None:
        return ""
    amount = (cost.per_hour * Decimal(str(seconds)) / HOUR_S).quantize(CENT)
    return f" and {cost.amount(amount)}{' (emulated, nobody pays)' if cost.emulated else ''}"


def copy(outcome: Outcome) -> str | None:
    """Return what of the run is copied to another machine, or to the drive."""
    found = outcome.copied
    if not found:
        return None
    best = len(found["best"])
    models = f" and {count(best, 'best model')}" if best else ""
    return f"copied to {found['to']}: {outcome.unit} {found['step']}{models}, {duration(found['lag_s'])} after it was written"


def report(cluster: ClusterFacts, outcome: Outcome, cost: Cost) -> str:
    """Return the summary of a run."""
    return "\n".join(f"  {name + ':':<17}{value}" for name, value in report_rows(cluster, outcome, cost))


def report_rows(cluster: ClusterFacts, outcome: Outcome, cost: Cost) -> list[tuple[str, str]]:
    """Return what is known of a run, by name."""
    job = cluster.job
    ranks = len(cluster.hosts) * cluster.slots
    # The addresses of nodes that a queue grants are the run's own matter.
    places = ", ".join(f"{h.name} ({h.private_address})" if h.private_address else h.name for h in cluster.hosts)
    rows = [
        (
            "run",
            f"{outcome.run} on stack {cluster.stack}: {outcome.state}"
            + (f" ({outcome.reason})" if outcome.reason else ""),
        ),
        ("trained by", outcome.trainer),
        ("model", RunFolder(cluster).plan.title if job else None),
        (
            "where",
            f"{count(ranks, 'rank')} on {places}; {cluster.slots}x {cluster.gpu} each"
            if cluster.gpu
            else f"{count(ranks, 'rank')} on {places}",
        ),
        ("hardware", EMULATED.format(account_of(cluster.account).title) if cost.emulated else None),
        (f"{outcome.unit}s", _done(outcome)),
        (
            "validation loss",
            f"{_loss(outcome.first_validation_loss)} at first, {_loss(outcome.validation_loss)} at last"
            if outcome.validation_loss is not None
            else None,
        ),
        ("evaluation", _evaluated(cluster, outcome)),
        ("metrics", ", ".join(_metrics(outcome)) or None),
        ("pace", f"{outcome.seconds_per_step:.3f} s/{outcome.unit}" if outcome.seconds_per_step is not None else None),
        ("predicted", _predicted(outcome)),
        ("planned", _planned(cluster)),
        ("throughput", _throughput(outcome)),
        ("checkpoints", _checkpoints(outcome)),
        ("note", outcome.remark),
        ("best models", ", ".join(outcome.best) or None),
        ("newest copy", copy(outcome)),
        ("cost", str(cost)),
    ]
    return [(name, value) for name, value in rows if value]


def _checkpoints(outcome: Outcome) -> str | None:
    steps = outcome.checkpoints
    if len(steps) > MOST_STEPS:
        return f"{len(steps)}, from step {min(steps)} to {max(steps)}"
    return ", ".join(str(step) for step in steps) or ("none" if outcome.saves else None)


def _done(outcome: Outcome) -> str | None:
    """Return the steps done; None of a program that says none and has no last one."""
    of = f" of {outcome.max_steps}" if outcome.max_steps else ""
    return f"{'none' if outcome.step is None else outcome.step}{of}" if outcome.step is not None or of else None


def _predicted(outcome: Outcome) -> str | None:
    if outcome.predicted_s is None:
        return None
    text = f"{outcome.predicted_s:.3f} s/step {outcome.predicted_source}"
    if outcome.seconds_per_step is None:
        return text
    off = outcome.seconds_per_step / outcome.predicted_s - 1
    return f"{text}; the run is {abs(off):.0%} {'slower' if off > 0 else 'faster'}"


def _throughput(outcome: Outcome) -> str | None:
    """Return objects per second; the program's own average includes evaluations and checkpoints."""
    if not outcome.objects_per_second:
        return None
    return f"{outcome.objects_per_second:.0f} objects/s over all ranks, evaluations and checkpoints included"


def _planned(cluster: ClusterFacts) -> str | None:
    """Return the time and cost that were expected before renting."""
    job, expected = cluster.job, cluster.prediction
    if job is None or expected is None or cluster.per_hour is None:
        return None
    bill = Bill(job.max_steps * expected.seconds, Decimal(str(cluster.per_hour)))
    return f"{bill.hours:.1f} h and ${bill.dollars:,.0f} for {count(job.max_steps, 'step')}, +-{BAND:.0%}, without preparation"


def _evaluated(cluster: ClusterFacts, outcome: Outcome) -> str | None:
    """Return the metrics of the last evaluations."""
    said = []
    for metric in RunFolder(cluster).plan.metrics if cluster.job else ():
        values = [one[metric.name] for one in outcome.evaluations if one.get(metric.name) is not None]
        if values:
            said.append(f"last {metric.label} {values[-1]}" + (f" ({metric.note})" if metric.note else ""))
    return ", ".join([count(len(outcome.evaluations), "evaluation"), *said]) if said else None
