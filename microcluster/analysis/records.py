"""The one reader of what a run's machines wrote: valid events, evaluations with their steps, curves. Pure."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from microcluster.jobs.plan import Metric

Event = Mapping[str, Any]
Point = tuple[int, float]
LARGEST = 10**18
"""No time, count or size is larger."""
NEEDED: Mapping[str, tuple[str, ...]] = {
    "alarm": ("cause", "text", "t"),
    "checkpoint": ("step",),
    "cleared": ("cause",),
    "copied": ("step", "to", "best", "lag_s"),
    "end": ("t",),
    "metric": ("name", "step", "value"),
    "passed_over": ("text",),
    "phase": ("phase", "t"),
    "prediction": ("seconds", "source"),
    "restored": ("step",),
    "sample": ("node", "t"),
    "staging": ("text",),
    "time": ("step", "seconds_per_step"),
    "train": ("step",),
    "validation": ("loss",),
}
"""The keys that readers of each event need."""
MEASURES = ("metric", "average_seconds_per_step", "average_objects_per_second", "parameters")


def sound(values: Iterable[object]) -> tuple[tuple[Event, ...], int]:
    """Return the valid events among ``values``, and the number of the others."""
    values = tuple(values)
    events = tuple(value for value in values if isinstance(value, dict) and _is_sound(value))
    return events, len(values) - len(events)


def parse(text: str) -> tuple[tuple[Event, ...], int]:
    """Read the lines of an event file; a last line that is still being written does not count."""
    lines = text.split("\n")
    if lines and _value(lines[-1]) is None:
        lines.pop()
    return sound(_value(line) for line in lines)


def _value(line: str) -> object:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _is_sound(event: dict[str, Any]) -> bool:
    name = event.get("event")
    if not isinstance(name, str):
        return False
    there = all(key in event for key in NEEDED.get(name, ()))
    return there and all(TYPES[key](value) for key, value in event.items() if key in TYPES) and _is_value(name, event)


def _is_value(name: str, event: Event) -> bool:
    if name in MEASURES:
        return _is_number(event.get("value"))
    return name != "trainer" or isinstance(event.get("value"), str)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < LARGEST


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and _is_number(value)


def _is_loss(value: object) -> bool:
    """A number, or the word for one that JSON cannot hold."""
    return _is_number(value) or value in ("nan", "inf", "-inf")


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _are(kind: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: isinstance(value, list) and all(map(kind, value))


TYPES: Mapping[str, Callable[[object], bool]] = {
    **dict.fromkeys(("t", "seconds", "seconds_per_step", "lag_s", "score"), _is_number),
    **dict.fromkeys(("step", "rx_bytes", "tx_bytes", "free_bytes", "bytes"), _is_whole),
    **dict.fromkeys(("phase", "cause", "text", "source", "node", "name"), _is_text),
    "loss": _is_loss,
    "gpus": lambda value: value is None or _are(_is_number)(value),
    "best": _are(_is_text),
    "max_steps": lambda value: value is None or _is_whole(value),
}
"""A key means the same in every event that has it."""


@dataclass(frozen=True)
class Evaluation:
    """One evaluation; ``loss`` is "nan" or "inf" where it is no number, ``scores`` are other figures by metric name."""

    step: int
    loss: float | str
    scores: Mapping[str, float] = field(default_factory=dict)
    t: float | None = None

    def as_json(self) -> dict[str, Any]:
        return {"step": self.step, "loss": self.loss, **self.scores, "t": self.t}


def evaluations(
    events: Sequence[Event], eval_steps: int | None = None, metrics: Sequence[Metric] = ()
) -> list[Evaluation]:
    """Return the evaluations in order, without those that a later attempt repeated.

    An attempt evaluates at its start, then every ``eval_steps``, and at its end. A step outside the loss lines around the evaluation is
    wrong; the step of the line after it is used then.
    """
    dating = _Dating(eval_steps, metrics)
    for event in events:
        dating.take(event)
    dating.end()
    return dating.found


class _Dating:
    """Reads events one by one; an evaluation stays open until a loss line or the end of its attempt gives its step."""

    def __init__(self, eval_steps: int | None, metrics: Sequence[Metric]) -> None:
        self.eval_steps = eval_steps
        self.metrics = {metric.event: metric for metric in metrics}
        self.found: list[Evaluation] = []
        self.open: dict[str, Any] | None = None
        self._begin(0)

    def take(self, event: Event) -> None:
        match event["event"]:
            case "validation":
                self.end()
                self.number += 1
                self.open = {"loss": event["loss"], "t": event.get("t"), "scores": {}}
                if "step" in event:
                    self._close(event["step"])
            case "train":
                self._close(self._due(event["step"]))
                self.logged = event["step"]
            case "checkpoint":
                self.saved = event["step"]
            case "finished":
                self.finished = True
            case "phase" | "end":
                self.end()
            case "started" | "restored" | "resuming":
                self.end()
                self.found = [one for one in self.found if one.step <= event.get("step", -1)]
                self._begin(event.get("step", 0))
            case name if self.open is not None and name in self.metrics:
                metric = self.metrics[name]
                if metric.key in event:
                    self.open["scores"][metric.name] = event[metric.key]

    def end(self) -> None:
        """Close an evaluation that no loss line follows; the last one of a training belongs to its newest checkpoint."""
        self._close(max(self.saved, self.logged) if self.finished else self._due(None))

    def _begin(self, step: int) -> None:
        self.begun = self.logged = self.saved = step
        self.number, self.finished = 0, False

    def _due(self, latest: int | None) -> int:
        """Return the step of the open evaluation; ``latest`` is that of the loss line after it."""
        step = self.begun + (self.number - 1) * self.eval_steps if self.eval_steps else -1
        if self.logged <= step and (latest is None or step <= latest):
            return step
        return self.logged if latest is None else latest

    def _close(self, step: int) -> None:
        if self.open is not None:
            self.found.append(Evaluation(step, **self.open))
        self.open = None


@dataclass(frozen=True)
class Curves:
    """Points (step, value) in the order of the log; ``pace`` in seconds per step."""

    train: tuple[Point, ...]
    validation: tuple[Point, ...]
    pace: tuple[Point, ...]
    evaluations: tuple[Evaluation, ...] = ()
    metrics: Mapping[str, tuple[Point, ...]] = field(default_factory=dict)
    """Other figures by name: of evaluations and of the program itself."""

    def as_json(self) -> dict[str, Any]:
        return {"train": self.train, "validation": self.validation, "pace": self.pace, **self.metrics}


def curves(events: Sequence[Event], eval_steps: int | None = None, metrics: Sequence[Metric] = ()) -> Curves:
    """Return the curves.

    The first pace and one after an evaluation include other work and are dropped, unless it is of training only; and so are points that a
    later attempt repeats.
    """
    train, pace = [], []
    figures: dict[str, list[Point]] = {}
    tainted = True
    for event in events:
        match event["event"]:
            case "train" if isinstance(event.get("loss"), float):
                train.append((event["step"], event["loss"]))
            case "validation":
                tainted = True
            case "started" | "restored" | "resuming":
                tainted = True
                train, pace = (_until(event.get("step", -1), one) for one in (train, pace))
                figures = {name: _until(event.get("step", -1), one) for name, one in figures.items()}
            case "metric":
                points = figures.setdefault(event["name"], [])
                if points and points[-1][0] == event["step"]:  # The last value of a step is its value.
                    points.pop()
                points.append((event["step"], event["value"]))
            case "time":
                timed = not tainted or event.get("training_only")
                pace += [(event["step"], event["seconds_per_step"])] if timed else []
                tainted = False
    evaluated = evaluations(events, eval_steps, metrics)
    validation = tuple((one.step, one.loss) for one in evaluated if isinstance(one.loss, float))
    for one in evaluated:
        for name, value in one.scores.items():
            figures.setdefault(name, []).append((one.step, value))
    return Curves(
        tuple(train),
        validation,
        tuple(pace),
        tuple(evaluated),
        {name: tuple(points) for name, points in figures.items()},
    )


def _until(step: float, points: list[Point]) -> list[Point]:
    return [point for point in points if point[0] <= step]


def rewound(points: Sequence[Point]) -> tuple[Point, ...]:
    """Drop the points that a later attempt repeated: it begins where the steps go back."""
    kept: list[Point] = []
    for point in points:
        while kept and kept[-1][0] >= point[0]:
            kept.pop()
        kept.append(point)
    return tuple(kept)
