"""What a run has to tell: its curves, and answers to the questions that are asked of every run. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from launchers.openseq2seq import Size

Event = Mapping[str, Any]
Point = tuple[int, float]

LEVEL_SHARE = 0.005
"""A validation loss that falls by less than this share over the last third of the run has levelled off."""
OVERFIT_SHARE = 0.02
"""A validation loss this share above its lowest says that the model began to learn its data by heart."""
GOODPUT = 0.941 * 125.0
"""Megabytes a second that TCP carries over one Gb/s."""
BYTES_PER_PARAMETER = 4
"""Gradients travel in 32 bits, in mixed precision as well (OpenSeq2Seq casts them before the reduce)."""
BOTTLENECK_SHARE = 0.3


@dataclass(frozen=True)
class Curves:
    """Points of step and value, in the order of the log: losses without unit, pace in seconds per step."""

    train: tuple[Point, ...]
    validation: tuple[Point, ...]
    pace: tuple[Point, ...]


@dataclass(frozen=True)
class Answer:
    """One question, its answer as a sentence, and the figures behind it."""

    question: str
    answer: str
    figures: Mapping[str, Any]


@dataclass(frozen=True)
class Traffic:
    """What the network has to carry for each step, by the law of a flat ring over all ranks.

    Attributes:
        bytes_per_step: for one network card in one direction.
        seconds: for these bytes at what the link really carries.
        exposed_s: what of that no computing hides, with a third of the computing before the backward pass.
    """

    bytes_per_step: float
    seconds: float
    exposed_s: float


def curves(events: Sequence[Event]) -> Curves:
    """Take the curves out of the events; the first pace and one after an evaluation hold other work and are left out."""
    train, validation, pace = [], [], []
    pending: float | None = None
    tainted = True
    for event in events:
        match event["event"]:
            case "train" if isinstance(event["loss"], float):
                train.append((event["step"], event["loss"]))
                if pending is not None:
                    validation.append((event["step"], pending))
                pending = None
            case "validation" if isinstance(event["loss"], float):
                pending, tainted = event["loss"], True
            case "started" | "restored":
                tainted = True
            case "time":
                pace += [] if tainted else [(event["step"], event["seconds_per_step"])]
                tainted = False
    return Curves(tuple(train), tuple(validation), tuple(pace))


def traffic(parameters: int, ranks: int, nodes: int, step_s: float, link_gbps: float) -> Traffic | None:
    """Estimate a step's traffic; None where all ranks share one machine."""
    if nodes < 2:
        return None
    volume = 2 * (ranks - 1) / ranks * parameters * BYTES_PER_PARAMETER
    seconds = volume / (link_gbps * GOODPUT * 1e6)
    # T = t/3 + max(2t/3, V/B), solved for what T holds beyond the computing t.
    exposed = min(max(3 * seconds - 2 * step_s, 0.0), step_s)
    return Traffic(volume, seconds, exposed)


def learning_rate(size: Size, step: int) -> float:
    """Compute the rate at a step by the transformer's policy: it rises for the warm-up and then falls with the root."""
    number = step + 1
    return size.learning_rate * size.hidden**-0.5 * min(number**-0.5, number * size.warmup_steps**-1.5)


def how_long(events: Sequence[Event]) -> Answer:
    """Say how long the run took, all attempts together."""
    question = "How long does the run take?"
    phases = [event for event in events if event["event"] in ("phase", "end")]
    trained = (
        sum(
            later["t"] - one["t"]
            for one, later in zip(phases, [*phases[1:], events[-1]], strict=True)
            if one.get("phase") == "training"
        )
        if phases
        else 0.0
    )
    whole = events[-1]["t"] - events[0]["t"] if events else 0.0
    figures = {"training_s": round(trained, 1), "whole_s": round(whole, 1)}
    return Answer(
        question, f"{_span(trained)} of training in {_span(whole)} from the first preparation to the end.", figures
    )


def trained_enough(found: Curves) -> Answer:
    """Judge by the last third of the validation losses."""
    question = "Is the model fully trained, and how can one tell?"
    losses = [loss for _, loss in found.validation]
    if len(losses) < 3:
        return Answer(question, "Not to be told: there are fewer than three evaluations.", {"evaluations": len(losses)})
    before, last = losses[-1 - max(len(losses) // 3, 1)], min(losses[-max(len(losses) // 3, 1) :])
    gain = (before - last) / before
    figures = {"before": before, "last": last, "gain_share": round(gain, 4)}
    if gain > LEVEL_SHARE:
        return Answer(
            question, f"No: over the last third of the run its validation loss still fell by {gain:.1%}.", figures
        )
    return Answer(
        question,
        f"As far as this data takes it: over the last third the validation loss fell by only {gain:.1%}.",
        figures,
    )


def overfitted(found: Curves) -> Answer:
    """Compare the last validation loss with the lowest."""
    question = "Was there overfitting?"
    if len(found.validation) < 3 or not found.train:
        return Answer(question, "Not to be told: there are fewer than three evaluations.", {})
    step, lowest = min(found.validation, key=lambda point: point[1])
    last, train = found.validation[-1][1], found.train[-1][1]
    figures = {"lowest": lowest, "at_step": step, "last": last, "train_loss": train}
    if last > lowest * (1 + OVERFIT_SHARE):
        return Answer(
            question,
            f"Yes: the validation loss was lowest at step {step} ({lowest:.4f}) and rose to {last:.4f} since.",
            figures,
        )
    return Answer(
        question, f"No: the validation loss is at its lowest or close to it ({last:.4f} against {lowest:.4f}).", figures
    )


def gpus_used(events: Sequence[Event]) -> Answer:
    """Average what the supervisor's samples say."""
    question = "Were the GPUs fully used?"
    values = [percent for event in events if event["event"] == "sample" for percent in event.get("gpus") or []]
    if not values:
        return Answer(question, "Not to be told: nothing sampled them.", {})
    mean = sum(values) / len(values)
    caveat = "waiting for the network counts as use, see the exposed communication"
    return Answer(
        question, f"{mean:.0f} % on average over {len(values)} samples; {caveat}.", {"mean_percent": round(mean, 1)}
    )


def network(found: Traffic | None, step_s: float | None) -> Answer:
    """Say what of a step the network takes that nothing hides."""
    question = "Was the network the bottleneck, and how does a step relate to it?"
    if found is None or not step_s:
        return Answer(
            question, "No: all ranks share one machine." if found is None else "Not to be told without a step time.", {}
        )
    share = found.exposed_s / step_s
    verdict = "Yes" if share > BOTTLENECK_SHARE else "In part" if share > 0 else "No"
    sentence = (
        f"{verdict}: each step moves {found.bytes_per_step / 1e6:.0f} MB each way, {found.seconds:.2f} s at what the link "
        f"carries; {found.exposed_s:.2f} s of the {step_s:.2f} s are not hidden by computing ({share:.0%}), by the ring's law."
    )
    figures = {
        "bytes_per_step": round(found.bytes_per_step),
        "network_s": round(found.seconds, 3),
        "exposed_s": round(found.exposed_s, 3),
    }
    return Answer(question, sentence, figures)


def rate(size: Size, step: int) -> Answer:
    """Tell the learning rate now and at its peak."""
    peak = learning_rate(size, size.warmup_steps - 1)
    now = learning_rate(size, step)
    sentence = f"{now:.2e} at step {step}; it rose to {peak:.2e} over {size.warmup_steps} steps of warm-up and falls with the root of the step."
    return Answer("What is the learning rate?", sentence, {"now": now, "peak": peak, "warmup_steps": size.warmup_steps})


def _span(seconds: float) -> str:
    hours, minutes = math.floor(seconds / 3600), math.floor(seconds % 3600 / 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds % 60:.0f} s"
