"""A run's curves, and answers to the questions that every report answers. Pure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

from microcluster.analysis.records import Curves, Event, Point, attempts, named
from microcluster.analysis.samples import MOST_NODES
from microcluster.core.plain_text import count, duration

Policy = Callable[[int], float | None]
"""The planned learning rate by step, from 1; None where only the program knows it."""

LEVEL_SHARE = 0.005
"""A validation loss that falls by less over the last third of the run has leveled off."""
RATE_POINTS = 200
"""Points of a learning rate drawn by its formula."""
OVERFIT_SHARE = 0.02
"""A validation loss this share above its lowest value means overfitting."""
FULL_PERCENT = 90
"""A machine whose GPUs are used less on average is not fully used."""


@dataclass(frozen=True)
class Answer:
    """A question, its answer as a sentence, and the figures behind it that nothing else in the report holds."""

    question: str
    answer: str
    figures: Mapping[str, Any] = field(default_factory=dict)


def planned_rates(policy: Policy, last: int) -> list[Point]:
    """Return the learning rates up to a step, by the formula."""
    steps = range(1, last + 1, max(last // RATE_POINTS, 1))
    return [(step, rate) for step in steps if (rate := policy(step)) is not None]


def how_long(events: Sequence[Event]) -> Answer:
    """Add up all attempts."""
    question = "How long does the run take?"
    times = [event["t"] for event in events if "t" in event] or [0.0]
    trained, whole = sum(one[-1]["t"] - one[0]["t"] for one in attempts(events)), max(times) - min(times)
    figures = {"training_s": round(trained, 1), "whole_s": round(whole, 1)}
    text = f"{duration(trained)} of training in {duration(whole)} from the first preparation to the end."
    return Answer(question, text, figures)


def trained_enough(found: Curves) -> Answer:
    """Judge by the last third of the validation losses."""
    question = "Is the model fully trained, and how can one tell?"
    losses = [loss for _, loss in found.validation]
    if len(losses) < 3:
        return Answer(question, "Unknown: there are fewer than three evaluations.")
    third = max(len(losses) // 3, 1)
    before, last = losses[-1 - third], min(losses[-third:])
    gain = (before - last) / before if before else 0.0
    figures = {"before": before, "last": last, "gain_share": round(gain, 4)}
    text = f"No: over the last third of the run its validation loss still fell by {gain:.1%}."
    if gain <= LEVEL_SHARE:
        moved = f"{'fell by only' if gain >= 0 else 'rose by'} {abs(gain):.1%}"
        text = f"As far as this data allows: over the last third the validation loss {moved}."
    return Answer(question, text, figures)


def overfitted(found: Curves) -> Answer:
    """Compare the last validation loss with the lowest."""
    question = "Was there overfitting?"
    if len(found.validation) < 3 or not found.train:
        return Answer(question, "Unknown: there are fewer than three evaluations.")
    step, lowest = min(found.validation, key=itemgetter(1))
    last, train = found.validation[-1][1], found.train[-1][1]
    figures = {"lowest": lowest, "at_step": step, "last": last, "train_loss": train}
    text = f"No: the validation loss is at its lowest or close to it ({last:.4f} against {lowest:.4f})."
    if last > lowest * (1 + OVERFIT_SHARE):
        text = f"Yes: the validation loss was lowest at step {step} ({lowest:.4f}) and rose to {last:.4f} since."
    return Answer(question, text, figures)


def gpus_used(events: Sequence[Event], *, emulated: bool = False) -> Answer:
    """Average the supervisor's samples of each machine."""
    question, sampled = "Were the GPUs fully used?", {}
    for event in named(events, "sample"):
        sampled.setdefault(event["node"], []).extend(event.get("gpus") or [])
    used = {node: round(sum(values) / len(values), 1) for node, values in sampled.items() if values}
    if not used:
        return Answer(question, "Unknown: nothing sampled them.")
    values = [value for each in sampled.values() for value in each]
    figures = {"mean_percent": round(sum(values) / len(values), 1), "by_machine": used}
    told = ", ".join(f"{node} {used[node]:.0f} %" for node in sorted(used, key=used.__getitem__)[:MOST_NODES])
    average = f"{told} on average over {count(len(values), 'sample')} of {count(len(used), 'machine')}"
    if emulated:
        text = f"Unknown: these GPUs are emulated by processors. Their figures are {average}."
        return Answer(question, text, figures | {"emulated": True})
    verdict = "Yes" if min(used.values()) >= FULL_PERCENT else "No"
    return Answer(question, f"{verdict}: {average}. Waiting for the network counts as use, see question 5.", figures)


def rate(policy: Policy, warmup_steps: int, step: int, recorded: Sequence[Point] = (), why: str = "") -> Answer:
    """Return the learning rate now, as recorded or by the formula, its peak, and ``why`` it moves so by the configuration."""
    question, peak = "How does the learning rate move, and why?", policy(warmup_steps)
    step, now = recorded[-1] if recorded else (step, policy(step))
    figures = {"now": now, "at_step": step}
    if now is None:
        return Answer(question, "Unknown: the program does not report it.", figures)
    text = f"{now:.2e} at step {step} ({'recorded by the trainer' if recorded else 'derived from the formula'})"
    if peak is not None and warmup_steps:
        figures |= {"peak": peak, "warmup_steps": warmup_steps}
        rises, falls = ("rises", "then falls") if step < warmup_steps else ("rose", "falls")
        text += f"; it {rises} to {peak:.2e} over {warmup_steps} steps of warm-up and {falls} with the root of the step"
    elif recorded:
        (first, began), (at, highest) = recorded[0], max(recorded, key=itemgetter(1))
        text += f"; it was {began:.2e} at step {first} and at most {highest:.2e}, at step {at}"
    return Answer(question, f"{text}. {why}", figures)
