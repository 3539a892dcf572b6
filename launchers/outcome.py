"""Judging a run by what its folder shows; neither exit code 0 nor "Finished training" proves that it succeeded."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

State = Literal["absent", "preparing", "running", "stalled", "failed", "stopped", "finished"]
STALL_S = 900.0
STALL_STEPS = 5.0
"""A run stalls when nothing is logged for 15 minutes or five times as long as between two lines, whichever is longer."""


@dataclass(frozen=True)
class Outcome:
    """Where a run stands."""

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
    objects_per_second: float | None = None
    eta_s: float | None = None
    reason: str | None = None
    evaluations: tuple[Mapping[str, Any], ...] = ()
    checkpoints: tuple[int, ...] = ()
    best: tuple[str, ...] = ()
    stand_in: str | None = None
    preflight: tuple[Mapping[str, Any], ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return it as plain values."""
        return dataclasses.asdict(self)


def judge(seen: Mapping[str, Any]) -> Outcome:
    """Return where the run stands that ``seen`` (the observation of its folder) shows."""
    if not seen["exists"]:
        return Outcome("absent")
    events, job = seen["events"], seen["job"]
    losses = [event for event in events if event["event"] == "train"]
    evaluations = _evaluations(events)
    seconds = _seconds_per_step(events)
    step = losses[-1]["step"] if losses else None
    state, reason = _state(seen, losses)
    left = job["max_steps"] - step if step is not None else None
    return Outcome(
        state=state,
        run=job["run"],
        phase=seen["phase"],
        phase_s=_phase_age(seen),
        step=job["max_steps"] if state == "finished" else step,
        max_steps=job["max_steps"],
        train_loss=losses[-1]["loss"] if losses else None,
        validation_loss=evaluations[-1]["loss"] if evaluations else None,
        first_validation_loss=evaluations[0]["loss"] if evaluations else None,
        seconds_per_step=seconds,
        objects_per_second=_last(events, "average_objects_per_second"),
        eta_s=round(left * seconds, 1) if state == "running" and left is not None and seconds else None,
        reason=reason,
        evaluations=tuple(evaluations),
        checkpoints=tuple(seen["checkpoints"]),
        best=tuple(seen["best"]),
        stand_in=_last(events, "stand_in"),
        preflight=tuple(seen["preflight"]),
    )


def _state(seen: Mapping[str, Any], losses: Sequence[Mapping[str, Any]]) -> tuple[State, str | None]:
    if seen["alive"]:
        return _living_state(seen)
    if seen["stopped"]:
        return "stopped", None
    flaws = _flaws(seen, losses)
    return ("failed", "; ".join(flaws)) if flaws else ("finished", None)


def _living_state(seen: Mapping[str, Any]) -> tuple[State, str | None]:
    if seen["phase"] != "training":
        return "preparing", None
    times = [event["t"] for event in seen["events"]]
    silent_s = seen["now"] - times[-1] if times else 0.0
    gaps = [later - earlier for earlier, later in zip(times, times[1:], strict=False)][-20:]
    if silent_s > max(STALL_S, STALL_STEPS * max(gaps, default=0.0)):
        return "stalled", f"nothing was logged for {silent_s / 60:.0f} minutes"
    return "running", None


def _flaws(seen: Mapping[str, Any], losses: Sequence[Mapping[str, Any]]) -> list[str]:
    """Name everything that keeps an ended run from being a success."""
    wanted = seen["job"]["max_steps"]
    if seen["exit_code"] is None:
        return ["its supervisor is gone and left no exit code"]
    if seen["exit_code"]:
        return [seen["failure"] or f"exit code {seen['exit_code']}"]
    flaws = []
    if any(isinstance(event["loss"], str) for event in losses):
        flaws.append("the training loss became nan or infinite")
    if not any(step >= wanted for step in seen["checkpoints"]):
        flaws.append(f"there is no checkpoint of step {wanted}")
    steps = [event["step"] for event in losses]
    between = max((later - earlier for earlier, later in zip(steps, steps[1:], strict=False)), default=wanted)
    if not steps or max(steps) < wanted - 2 * max(between, 1):
        flaws.append(f"the last step in the log is {max(steps, default=0)} of {wanted}")
    return flaws


def _evaluations(events: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return loss, score and step of every evaluation; the loss line of the step follows its evaluation."""
    found: list[dict[str, Any]] = []
    for event in events:
        if event["event"] == "validation":
            found.append({"loss": event["loss"], "bleu": None, "step": None, "t": event["t"]})
        elif event["event"] == "bleu" and found:
            found[-1]["bleu"] = event["score"]
        elif event["event"] == "train" and found and found[-1]["step"] is None:
            found[-1]["step"] = event["step"]
    return found


def _seconds_per_step(events: Sequence[Mapping[str, Any]]) -> float | None:
    """Return the pace of the last lines; the first value is start-up time, and one after an evaluation includes it."""
    starts = [number for number, event in enumerate(events) if event.get("phase") == "training"]
    events = events[starts[-1] :] if starts else events
    average = _last(events, "average_seconds_per_step")
    if average is not None:
        return average
    clean, tainted = [], True
    for event in events:
        if event["event"] in ("started", "restored", "validation"):
            tainted = True
        elif event["event"] == "time":
            if not tainted:
                clean.append(event["seconds_per_step"])
            tainted = False
    recent = sorted(clean[-9:])
    return recent[len(recent) // 2] if recent else None


def _phase_age(seen: Mapping[str, Any]) -> float | None:
    entered = [event["t"] for event in seen["events"] if event["event"] == "phase"]
    return round(seen["now"] - entered[-1], 1) if entered else None


def _last(events: Sequence[Mapping[str, Any]], name: str) -> Any:
    return next((event["value"] for event in reversed(events) if event["event"] == name), None)
