"""The state of a run, from a snapshot of its folder.

Of a program of the user's own the exit code says whether it finished; of one that we know, neither that nor "Finished training" does.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from microcluster.analysis.bottleneck import Link, by_cause
from microcluster.analysis.records import Event, curves, sound
from microcluster.jobs.plan import NO_CHECKPOINTS, Metric

State = Literal["absent", "preparing", "running", "stalled", "failed", "stopped", "finished"]
NOTHING_SAVED = "none of its files is a checkpoint by the name that the stack file gives"
SETTLED_STEPS = 50
"""After so many steps of an attempt its pace is compared with the prediction."""
SUPERVISOR_SILENT_S = SAMPLED_LATELY_S = 120.0
"""A living supervisor writes every few seconds in every phase; a silent one hangs, or its disk does."""


@dataclass(frozen=True)
class Outcome:
    """The state of a run."""

    state: State
    run: str | None = None
    phase: str | None = None
    phase_s: float | None = None
    step: int | None = None
    max_steps: int | None = None
    train_loss: float | str | None = None
    validation_loss: float | str | None = None
    first_validation_loss: float | str | None = None
    seconds_per_step: float | None = None
    predicted_s: float | None = None
    predicted_source: str | None = None
    objects_per_second: float | None = None
    eta_s: float | None = None
    reason: str | None = None
    cause: str | None = None
    last_lines: tuple[str, ...] = ()
    alarms: tuple[Mapping[str, Any], ...] = ()
    put_aside: tuple[str, ...] = ()
    """What this attempt did not go on from, and why."""
    evaluations: tuple[Mapping[str, Any], ...] = ()
    checkpoints: tuple[int, ...] = ()
    best: tuple[str, ...] = ()
    copied: Mapping[str, Any] | None = None
    """The newest copy on another machine: step, best models, machine, seconds after it was written."""
    trainer: str | None = None
    """The training program, as its first line says, else as the image was built."""
    preflight: tuple[Mapping[str, Any], ...] = ()
    checks: tuple[Mapping[str, Any], ...] = ()
    doing: str | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)
    """The latest value of each figure of the program itself."""
    malformed: int = 0
    """Lines of its events that could not be read."""
    unit: str = "step"
    """What a step is: an update, or an epoch."""
    ended_at: float | None = None
    """When a finished run ended, in seconds since 1970."""
    saves: bool = True
    """Whether the program writes checkpoints; else a run that ends early starts over."""
    word: str | None = None
    """Tells this training from others of the same configuration."""
    remark: str | None = None
    """Of a run that finished: what a person has to know before the machines go."""
    idle_s: float | None = None
    """For how long nothing has happened on any of its machines; None where that is not known of each of them now."""
    armed: bool = False
    """Whether it has made a step, so that being idle is not its start."""
    settled: bool = False
    """Whether its pace is that of enough steps to be compared with the prediction."""
    causes: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Seconds of a step by what takes them, predicted and measured; empty where that was never timed."""

    def as_json(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


def judge(seen: Mapping[str, Any]) -> Outcome:
    """Return the state of the run whose folder ``seen`` is a snapshot of."""
    if not seen["exists"]:
        return Outcome("absent")
    events, malformed = sound(seen["events"])
    seen = {**seen, "events": events}
    job = seen["job"]
    losses = [event for event in events if event["event"] == "train"]
    evaluated = curves(events, job.get("eval_steps"), [Metric(**one) for one in job["metrics"]]).evaluations
    seconds = _seconds_per_step(events)
    step = losses[-1]["step"] if losses else None
    state, cause, reason = _state(seen, losses)
    left = max(job["max_steps"] - step, 0) if step is not None and job["max_steps"] else None
    expected = _prediction(seen)
    settled = bool(seconds) and _steps_of(events) >= SETTLED_STEPS
    activity = _activity(seen)
    return Outcome(
        state=state,
        run=job["run"],
        phase=seen["phase"],
        phase_s=_phase_age(seen),
        doing=_doing(seen) if state == "preparing" else None,
        step=job["max_steps"] if state == "finished" and not job["exit_code_decides"] else step,
        max_steps=job["max_steps"],
        unit=job["unit"],
        saves=_saves(job),
        word=job.get("word"),
        ended_at=_latest(events, "end").get("t") if state == "finished" else None,
        remark=NOTHING_SAVED if state == "finished" and _saves(job) and not seen["checkpoints"] else None,
        train_loss=next((event["loss"] for event in reversed(losses) if "loss" in event), None),
        validation_loss=evaluated[-1].loss if evaluated else None,
        first_validation_loss=evaluated[0].loss if evaluated else None,
        seconds_per_step=seconds,
        predicted_s=expected["seconds"],
        predicted_source=expected["source"],
        settled=settled,
        causes=by_cause(_link(job, seconds, expected)) if settled else {},
        objects_per_second=_latest(events, "average_objects_per_second").get("value"),
        eta_s=round(left * seconds, 1) if state == "running" and left is not None and seconds else None,
        reason=reason,
        cause=cause,
        idle_s=activity.get("idle_s"),
        armed=bool(activity.get("armed")),
        last_lines=tuple(filter(str.strip, seen["failure"]["lines"])) if state == "failed" and seen["failure"] else (),
        alarms=(*_alarms(events), *_drive_alarm(seen)) if state in ("running", "stalled") else (),
        put_aside=_put_aside(events),
        evaluations=tuple(one.as_json() for one in evaluated),
        checkpoints=tuple(seen["checkpoints"]),
        best=tuple(seen["best"]),
        copied=_latest(events, "copied") or None,
        trainer=_latest(events, "trainer").get("value") or job.get("trainer"),
        metrics={e["name"]: e["value"] for e in _this_attempt(events) if e["event"] == "metric"},
        malformed=malformed,
        preflight=tuple((seen["preflight"] or {}).get("ranks", ())),
        checks=tuple((seen["preflight"] or {}).get("rows", ())),
    )


def _state(seen: Mapping[str, Any], losses: Sequence[Event]) -> tuple[State, str | None, str | None]:
    if seen["alive"]:
        return _living_state(seen)
    if seen["stopped"]:
        by_guard = seen["failure"] or {}
        return "stopped", by_guard.get("cause"), by_guard.get("sentence")
    if seen["exit_code"] is None:
        return "failed", "supervisor-gone", "its supervisor is gone and left no exit code; ranks may still be running"
    if seen["exit_code"]:
        failure = seen["failure"] or {"cause": "unknown", "sentence": f"exit code {seen['exit_code']}"}
        return "failed", failure["cause"], failure["sentence"]
    flaws = _flaws(seen, losses)
    return ("failed", "incomplete", "; ".join(flaws)) if flaws else ("finished", None, None)


def _living_state(seen: Mapping[str, Any]) -> tuple[State, str | None, str | None]:
    silent_s = seen.get("silent_s") or 0.0
    if silent_s > SUPERVISOR_SILENT_S:
        return "stalled", "supervisor-silent", f"its supervisor has been silent for {silent_s / 60:.0f} minutes"
    if seen["phase"] != "training":
        return "preparing", None, None
    stalled = [alarm for alarm in _alarms(seen["events"]) if alarm["cause"] == "stalled"]
    if stalled:
        return "stalled", "stalled", stalled[0]["text"]
    return "running", None, None


def _activity(seen: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what the newest samples of the machines say, also after the run, nothing where they are old.

    A preparation is never idle: its supervisor ends it when nothing moves.
    """
    if seen["alive"] and seen["phase"] != "training":
        return {"idle_s": 0.0}
    found = seen.get("activity") or {}
    return found if found and abs(found["age_s"]) < SAMPLED_LATELY_S else {}


def _alarms(events: Sequence[Event]) -> list[dict[str, Any]]:
    """Return the alarms of this attempt that were not cleared."""
    found: dict[str, dict[str, Any]] = {}
    for event in events:
        if event["event"] == "phase":
            found = {}
        elif event["event"] == "alarm":
            found[event["cause"]] = {"cause": event["cause"], "text": event["text"], "t": event["t"]}
        elif event["event"] == "cleared":
            found.pop(event["cause"], None)
    return list(found.values())


def _put_aside(events: Sequence[Event]) -> tuple[str, ...]:
    """Return the sentences on the checkpoints that this attempt put aside while it prepared."""
    found: list[str] = []
    for event in events:
        if event.get("phase") == "preparing":
            found = []
        elif event["event"] == "passed_over":
            found.append(event["text"])
    return tuple(found)


def _drive_alarm(seen: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the alarm over a drive that did not answer just now, so that its checkpoints are not known."""
    why = seen.get("drive_silent")
    text = f"the drive with the checkpoints does not answer the first machine ({why}); none of them is listed here"
    return [{"cause": "drive-lost", "text": text, "t": seen["now"]}] if why else []


def _saves(job: Mapping[str, Any]) -> bool:
    return job.get("checkpoints") != NO_CHECKPOINTS


def _flaws(seen: Mapping[str, Any], losses: Sequence[Event]) -> list[str]:
    """Name what is missing in a run that ended with exit code 0."""
    job, flaws = seen["job"], []
    wanted, unit = job["max_steps"], job["unit"]
    if any(isinstance(event.get("loss"), str) for event in _this_attempt(seen["events"]) if event["event"] == "train"):
        flaws.append("the training loss became nan or infinite")
    if seen.get("drive_silent") and _saves(job):
        flaws.append("the drive with its checkpoints does not answer")
    if job["exit_code_decides"]:
        last = _latest(seen["events"], "end").get("max_steps")
        if wanted and last and wanted > last:
            flaws.append(f"it ended when {unit} {last} was to be its last, and now {wanted} is")
        return flaws
    if not seen.get("drive_silent") and _saves(job) and not any(step >= wanted for step in seen["checkpoints"]):
        flaws.append(f"there is no checkpoint of {unit} {wanted}")
    named = {event["name"] for event in _this_attempt(seen["events"]) if event["event"] == "metric"}
    if job["result"] and job["result"] not in named:
        label = next(one["label"] for one in job["metrics"] if one["name"] == job["result"])
        flaws.append(f"its log does not end with the {label}")
    steps = [event["step"] for event in losses]
    between = max((later - earlier for earlier, later in zip(steps, steps[1:], strict=False)), default=wanted)
    if not steps or max(steps) < wanted - 2 * max(between, 1):
        flaws.append(f"the last step in the log is {max(steps, default=0)} of {wanted}")
    return flaws


def _seconds_per_step(events: Sequence[Event]) -> float | None:
    """Return the median of the last lines, without those that include start-up or an evaluation.

    The program's own average includes evaluations and checkpoints; it is used only when a run is too short for anything else.
    """
    events = _this_attempt(events)
    recent = sorted(seconds for _, seconds in curves(events).pace[-9:])
    return recent[len(recent) // 2] if recent else _latest(events, "average_seconds_per_step").get("value")


def _prediction(seen: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return {seconds, source, mbps} of a step on the network that the preflight measured, else as planned."""
    planned = seen["job"].get("predicted_s")
    before = {"seconds": planned, "source": None if planned is None else "before renting"}
    return _latest(_this_attempt(seen["events"]), "prediction") or before


def _steps_of(events: Sequence[Event]) -> int:
    """Return how many steps the log shows since the ranks were last started."""
    own = [event["step"] for event in _this_attempt(events) if event["event"] == "train"]
    return own[-1] - own[0] if own else 0


def _link(job: Mapping[str, Any], step_s: float | None, expected: Mapping[str, Any]) -> Link:
    """Return what the network of this attempt was predicted to carry, beside its measured step."""
    volume, mbps = job.get("wire_bytes") or None, expected.get("mbps") or 0
    return Link(
        2 if volume else 1,
        step_s,
        job.get("port_speed_mbps") or 0,
        carries_mbps=mbps,
        ring_bytes=volume,
        compute_s=job.get("compute_s"),
        predicted_s=expected["seconds"],
    )


def _this_attempt(events: Sequence[Event]) -> Sequence[Event]:
    """Return the events since the ranks were last started."""
    starts = [number for number, event in enumerate(events) if event.get("phase") == "training"]
    return events[starts[-1] :] if starts else events


def _phase_age(seen: Mapping[str, Any]) -> float | None:
    if seen.get("queue"):
        return seen["queue"]["waited_s"]
    entered = _latest(seen["events"], "phase")
    return round(seen["now"] - entered["t"], 1) if entered else None


def _doing(seen: Mapping[str, Any]) -> str | None:
    """Return where the run's job stands in its queue, else the latest message of the data preparation."""
    if seen.get("queue"):
        return place_in_queue(seen["queue"])
    return _latest(seen["events"], "phase", "staging").get("text")


def place_in_queue(queue: Mapping[str, Any]) -> str:
    """Return where the run's job stands in its queue."""
    place = f"number {queue['position']} of {queue['waiting']} that wait" if queue["position"] else "being started"
    return f"job {queue['job']} is {place} in queue {queue['queue']}"


def _latest(events: Sequence[Event], *names: str) -> Event:
    """Return the last event of a name; empty where there is none."""
    return next((event for event in reversed(events) if event["event"] in names), {})
