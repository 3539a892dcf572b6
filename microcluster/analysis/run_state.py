"""The state of a run, from a snapshot of its folder.

Of a program of the user's own the exit code says whether it finished; of one that we know, neither that nor "Finished training" does.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median_high
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, TypeAdapter
from typing_extensions import TypedDict

from agent import step_time_model
from agent.run import document
from agent.run.document import NO_CHECKPOINTS, RunDocument
from microcluster.analysis.bottleneck import Link, by_cause
from microcluster.analysis.records import Evaluation, Event, curves, latest, named, since, sound
from microcluster.jobs.job_section import GRADIENT_BYTES

State = Literal["absent", "preparing", "running", "stalled", "failed", "stopped", "finished"]
NOTHING_SAVED = "none of its files is a checkpoint by the name that the stack file gives"
SETTLED_STEPS = 50
"""Steps of an attempt after which its pace is compared with the prediction."""
SUPERVISOR_SILENT_S = SAMPLED_LATELY_S = 120.0
"""A living supervisor writes every few seconds in every phase; a silent one hangs, or its disk does."""


WANDB_URL = re.compile(r"https://[\w.-]{1,200}(:\d{1,5})?(/[\w.~%/?=&+-]{0,300})?", re.ASCII)
"""Address of a run's Weights & Biases page in a log; only the plain characters of a URL."""
LONGEST_TEXT = 4000
Text = Annotated[str, BeforeValidator(lambda value: value[:LONGEST_TEXT] if isinstance(value, str) else value)]
"""Text from a machine, cut at LONGEST_TEXT characters."""


class Check(TypedDict):
    """One row of the preflight's table."""

    check: Text
    where: Text
    found: Text
    wanted: Text
    verdict: Literal["ok", "note", "stop"]


@dataclass(frozen=True)
class Outcome:
    """The state of a run.

    Attributes:
        put_aside: what this attempt did not go on from, and why.
        copied: the newest copy on another machine: step, best models, machine, seconds after it was written.
        trainer: the training program, as its first line says, else as the image was built.
        metrics: the latest value of each figure of the program itself.
        malformed: lines of its events that could not be read.
        unit: what a step is: an update, or an epoch.
        batch: how far it is in the step under way, where that is an epoch and its log says so.
        wandb_url: the run's page at Weights & Biases, where the program has named one.
        ended_at: when its program ended last, in seconds since 1970.
        saves: whether the program writes checkpoints; else a run that ends early starts over.
        word: tells this training from others of the same configuration.
        remark: what a person has to know of its checkpoints before the machines go.
        idle_s: for how long nothing has happened on any of its machines; None where that is not known of each of them now.
        armed: whether it has made a step, so that being idle is not its start.
        settled: whether its pace is that of enough steps to be compared with the prediction.
        causes: seconds of a step by what takes them, predicted and measured; empty where that was never timed.
    """

    __pydantic_config__ = ConfigDict(allow_inf_nan=False)

    state: State
    phase: Text | None = None
    phase_s: float | None = None
    doing: Text | None = None
    step: int | None = None
    max_steps: int | None = None
    unit: str = "step"
    batch: int | None = None
    wandb_url: Text | None = None
    saves: bool = True
    word: Text | None = None
    ended_at: float | None = None
    train_loss: float | Text | None = None
    validation_loss: float | Text | None = None
    evaluations: tuple[Evaluation, ...] = ()
    metrics: Mapping[str, float | Text] = field(default_factory=dict)
    seconds_per_step: float | None = None
    predicted_s: float | None = None
    predicted_source: Text | None = None
    settled: bool = False
    causes: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    link: Link | None = None
    objects_per_second: float | None = None
    eta_s: float | None = None
    reason: Text | None = None
    cause: Text | None = None
    remark: Text | None = None
    last_lines: tuple[Text, ...] = ()
    alarms: tuple[Event, ...] = ()
    put_aside: tuple[Text, ...] = ()
    checkpoints: tuple[int, ...] = ()
    best: tuple[Text, ...] = ()
    copied: Event | None = None
    trainer: Text | None = None
    checks: tuple[Check, ...] = ()
    idle_s: float | None = None
    armed: bool = False
    malformed: int = 0


OUTCOME = TypeAdapter(Outcome)


def judge(seen: Mapping[str, Any]) -> Outcome:
    """Return the state of the run whose folder ``seen`` is a snapshot of.

    Raises:
        agent.run.document.SpecError: another version has started it.
    """
    if not seen["exists"]:
        return Outcome("absent")
    job = document.parse(seen["job"], document.FILE)
    # Of what is not there, the agent of a run that an earlier version has begun writes null.
    seen = {**seen, "failure": seen["failure"] or {}, "preflight": seen["preflight"] or {}}
    events, malformed = sound(seen["events"])
    attempt = since(events, "training")
    trained = named(events, "train")
    evaluations = curves(events, job.expected.eval_steps, job.logs.metrics).evaluations
    state, cause, reason = _state(seen, job, events)
    saves = job.checkpoints.format != NO_CHECKPOINTS
    step = trained[-1]["step"] if trained else None
    planned = {
        "seconds": job.expected.predicted_s,
        "source": None if job.expected.predicted_s is None else "before renting",
    }
    expected = latest(attempt, "prediction") or planned
    link = _link(job, events, seen["preflight"], _seconds_per_step(attempt), expected["seconds"])
    settled = bool(link.step_s) and _steps_of(attempt) >= SETTLED_STEPS
    more = _activity(seen)
    batch, page = latest(attempt, "batch"), str(latest(events, "wandb").get("text"))
    suspected = latest(since(events, "preparing"), "suspected")
    if suspected:
        more["remark"] = (
            f"the newest checkpoint, of {job.logs.unit} {suspected['step']}, is suspected: {suspected['text']}"
        )
    if state == "running" and step is not None and job.expected.max_steps and link.step_s:
        more["eta_s"] = round(max(job.expected.max_steps - step, 0) * link.step_s, 1)
    if state in ("running", "stalled"):
        more["alarms"] = (*_alarms(events), *_drive_alarm(seen))
    if state == "failed" and seen["failure"]:
        more["last_lines"] = tuple(filter(str.strip, seen["failure"].get("lines", ())))
    if state == "finished":
        if saves and not seen["checkpoints"]:
            more["remark"] = NOTHING_SAVED
        step = step if job.logs.exit_code_decides else job.expected.max_steps
    return Outcome(
        state,
        phase=seen["phase"],
        phase_s=_phase_age(seen, events),
        doing=_doing(seen, events),
        step=step,
        max_steps=job.expected.max_steps,
        unit=job.logs.unit,
        batch=batch["value"] if batch and batch["step"] == step else None,
        wandb_url=page if WANDB_URL.fullmatch(page) else None,
        saves=saves,
        word=job.word,
        ended_at=latest(events, "end").get("t"),
        train_loss=next((event["loss"] for event in reversed(trained) if "loss" in event), None),
        validation_loss=evaluations[-1]["loss"] if evaluations else None,
        seconds_per_step=link.step_s,
        predicted_s=link.predicted_s,
        predicted_source=expected["source"],
        settled=settled,
        causes=by_cause(link) if settled else {},
        link=link,
        objects_per_second=latest(events, "average_objects_per_second").get("value"),
        reason=reason,
        cause=cause,
        put_aside=tuple(event["text"] for event in named(since(events, "preparing"), "passed_over")),
        evaluations=tuple(evaluations),
        checkpoints=tuple(seen["checkpoints"]),
        best=tuple(seen["best"]),
        copied=latest(events, "copied") or None,
        trainer=latest(events, "trainer").get("value") or job.program.trainer,
        metrics={event["name"]: event["value"] for event in named(attempt, "metric")},
        malformed=malformed,
        checks=tuple(seen["preflight"].get("rows", ())),
        **more,
    )


def _state(seen: Mapping[str, Any], job: RunDocument, events: Sequence[Event]) -> tuple[State, str | None, str | None]:
    if seen["alive"]:
        return _living_state(seen, events)
    failure = seen["failure"]
    if seen["stopped"]:
        return "stopped", failure.get("cause"), failure.get("sentence")
    if seen["exit_code"] is None:
        return "failed", "supervisor-gone", "its supervisor is gone and left no exit code; ranks may still be running"
    if seen["exit_code"]:
        return "failed", failure.get("cause", "unknown"), failure.get("sentence", f"exit code {seen['exit_code']}")
    flaws = "; ".join(_flaws(seen, job, events))
    if flaws:
        return "failed", "incomplete", flaws
    return "finished", None, None


def _living_state(seen: Mapping[str, Any], events: Sequence[Event]) -> tuple[State, str | None, str | None]:
    silent_s = seen["silent_s"] or 0.0
    if silent_s > SUPERVISOR_SILENT_S:
        return "stalled", "supervisor-silent", f"its supervisor has been silent for {silent_s / 60:.0f} minutes"
    if seen["phase"] != "training":
        return "preparing", None, None
    for alarm in _alarms(events):
        if alarm["cause"] == "stalled":
            return "stalled", "stalled", alarm["text"]
    return "running", None, None


def _activity(seen: Mapping[str, Any]) -> dict[str, Any]:
    """Return the activity of the machines by their newest samples, also after the run; nothing where these are old.

    A preparation is never idle: its supervisor ends it when nothing moves.
    """
    if seen["alive"] and seen["phase"] != "training":
        return {"idle_s": 0.0}
    activity = seen["activity"]
    if not activity or abs(activity["age_s"]) > SAMPLED_LATELY_S:
        return {}
    return {"idle_s": activity["idle_s"], "armed": activity["armed"]}


def _alarms(events: Sequence[Event]) -> list[Event]:
    """Return the alarms of this attempt that were not cleared."""
    open_alarms: dict[str, Event] = {}
    for event in events:
        match event["event"]:
            case "phase":
                open_alarms.clear()
            case "alarm":
                open_alarms[event["cause"]] = event
            case "cleared":
                open_alarms.pop(event["cause"], None)
    return list(open_alarms.values())


def _drive_alarm(seen: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the alarm over a drive that did not answer just now, so that its checkpoints are not known."""
    why = seen["drive_silent"]
    text = f"the drive with the checkpoints does not answer the first machine ({why}); none of them is listed here"
    return [{"cause": "drive-lost", "text": text, "t": seen["now"]}] if why else []


def _flaws(seen: Mapping[str, Any], job: RunDocument, events: Sequence[Event]) -> Iterator[str]:
    """Name what is missing in a run that ended with exit code 0."""
    attempt = since(events, "training")
    max_steps, saves = job.expected.max_steps, job.checkpoints.format != NO_CHECKPOINTS
    if isinstance(next((event["loss"] for event in reversed(named(attempt, "train")) if "loss" in event), None), str):
        yield "the last training loss is nan or infinite"
    if saves and seen["drive_silent"]:
        yield "the drive with its checkpoints does not answer"
    if job.logs.exit_code_decides:
        last = latest(events, "end").get("max_steps")
        if max_steps and last and max_steps > last:
            yield f"it ended when {job.logs.unit} {last} was to be its last, and now {max_steps} is"
        return
    if saves and not seen["drive_silent"] and max(seen["checkpoints"], default=-1) < max_steps:
        yield f"there is no checkpoint of {job.logs.unit} {max_steps}"
    if job.logs.result and all(event["name"] != job.logs.result for event in named(attempt, "metric")):
        label = next(metric.label for metric in job.logs.metrics if metric.name == job.logs.result)
        yield f"its log does not end with the {label}"
    steps = [event["step"] for event in named(events, "train")]
    between = max((later - earlier for earlier, later in pairwise(steps)), default=max_steps)
    last = max(steps, default=0)
    if not steps or last < max_steps - 2 * max(between, 1):
        yield f"the last step in the log is {last} of {max_steps}"


def _seconds_per_step(attempt: Sequence[Event]) -> float | None:
    """Return the median of the last lines, without those that include start-up or an evaluation.

    The program's own average includes evaluations and checkpoints; it is used only when a run is too short for anything else.
    """
    recent = [seconds for _, seconds in curves(attempt).pace[-9:]]
    return median_high(recent) if recent else latest(attempt, "average_seconds_per_step").get("value")


def _steps_of(attempt: Sequence[Event]) -> int:
    """Return how many steps the log shows since the ranks were last started."""
    own = [event["step"] for event in named(attempt, "train")]
    return own[-1] - own[0] if own else 0


def _link(
    job: RunDocument,
    events: Sequence[Event],
    preflight: Mapping[str, Any],
    step_s: float | None,
    predicted_s: float | None,
) -> Link:
    """Return the measured and the planned figures of the network between the ranks."""
    nodes = len(job.machines.names)
    model_bytes = GRADIENT_BYTES * latest(events, "parameters").get("value", 0)
    return Link(
        nodes,
        step_s,
        job.machines.port_speed_mbps or 0,
        step_time_model.slowest_mbps(preflight),
        step_time_model.ring_bytes(model_bytes, nodes * job.machines.slots, nodes) or job.expected.wire_bytes or None,
        job.expected.compute_s,
        predicted_s,
    )


def _phase_age(seen: Mapping[str, Any], events: Sequence[Event]) -> float | None:
    if seen.get("queue"):
        return seen["queue"]["waited_s"]
    if seen["alive"] and not seen["phase"]:  # Its supervisor has begun just now; the events are of the attempt before.
        return 0.0
    entered = latest(events, "phase")
    return round(seen["now"] - entered["t"], 1) if entered else None


def _doing(seen: Mapping[str, Any], events: Sequence[Event]) -> str | None:
    """Return where the run's job stands in its queue, else the latest message of the data preparation."""
    if seen.get("queue"):
        return place_in_queue(seen["queue"])
    return latest(events, "phase", "staging").get("text")


def place_in_queue(queue: Mapping[str, Any]) -> str:
    """Return where the run's job stands in its queue."""
    place = f"number {queue['position']} of {queue['waiting']} that wait" if queue["position"] else "being started"
    return f"job {queue['job']} is {place} in queue {queue['queue']}"
