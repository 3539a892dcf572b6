"""The one reader of what a run's machines wrote: valid events, evaluations with their steps, curves. Pure."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, ValidationError, create_model

from agent.run.document import LARGEST_STEP, LONGEST_METRIC, Metric

Event = Mapping[str, Any]
Point = tuple[int, float]
Evaluation = dict[str, Any]
"""``step``, ``loss`` ("nan" or "inf" where it is no number), ``t``, and other figures by metric name."""
MOST_METRICS = 100
"""Most metric names in one file of events; further ones are left out."""
LARGEST, LARGEST_VALUE = LARGEST_STEP, 1e300
"""Largest time, count or size of a record, and bound of a loss or metric that is drawn."""
NEEDED: Mapping[str, tuple[str, ...]] = {
    "alarm": ("cause", "text", "t"),
    "average_objects_per_second": ("value",),
    "average_seconds_per_step": ("value",),
    "checkpoint": ("step",),
    "batch": ("step", "value"),
    "cleared": ("cause",),
    "copied": ("step", "to", "best", "lag_s"),
    "data": ("text",),
    "end": ("t",),
    "metric": ("name", "step", "value"),
    "parameters": ("value",),
    "passed_over": ("text",),
    "suspected": ("step", "text"),
    "phase": ("phase", "t"),
    "prediction": ("seconds", "source"),
    "restored": ("step",),
    "sample": ("node", "t"),
    "staging": ("text",),
    "time": ("step", "seconds_per_step"),
    "train": ("step",),
    "trainer": ("value",),
    "validation": ("loss",),
    "wandb": ("text",),
}
"""The keys that readers of each event need."""
Number = Annotated[float, Field(gt=-LARGEST, lt=LARGEST, allow_inf_nan=False)]
Value = Annotated[float, Field(gt=-LARGEST_VALUE, lt=LARGEST_VALUE, allow_inf_nan=False)]
Seconds = Annotated[float, Field(ge=0, lt=10**11, allow_inf_nan=False)]
"""Seconds since 1970, up to the year 5138."""
Whole = Annotated[int, Field(gt=-LARGEST, lt=LARGEST)]
TYPES: Mapping[str, Any] = {
    "t": Seconds,
    **dict.fromkeys(("seconds", "seconds_per_step", "lag_s", "score"), Number),
    **dict.fromkeys(("step", "rx_bytes", "tx_bytes", "free_bytes", "bytes"), Whole),
    **dict.fromkeys(("phase", "cause", "text", "source", "node"), str),
    "name": Annotated[str, Field(max_length=LONGEST_METRIC, pattern=r"^[^\p{C}\p{Zl}\p{Zp}]*$")],
    "loss": Value | Literal["nan", "inf", "-inf"],  # JSON has no number for the words.
    "gpus": list[Number] | None,
    "best": list[str],
    "max_steps": Whole | None,
    "value": Value | str,
}
"""A key means the same in every event that has it."""
AnyEvent = create_model(
    "AnyEvent", __config__=ConfigDict(strict=True), event=str, **{key: (kind, None) for key, kind in TYPES.items()}
)


def sound(values: Iterable[object]) -> tuple[tuple[Event, ...], int]:
    """Return the valid events among ``values``, and the number of the others."""
    values = tuple(values)
    events = tuple(filter(_is_sound, values))
    names = dict.fromkeys(event["name"] for event in events if event["event"] == "metric")
    surplus = set(list(names)[MOST_METRICS:])
    kept = tuple(event for event in events if event["event"] != "metric" or event["name"] not in surplus)
    return kept, len(values) - len(kept)


def parse(text: str) -> tuple[tuple[Event, ...], int]:
    """Read the lines of an event file; a last line that is still being written does not count."""
    lines = text.split("\n")
    if lines and _value(lines[-1]) is None:
        lines.pop()
    return sound(map(_value, lines))


def _value(line: str) -> object:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _is_sound(value: Any) -> bool:
    try:
        AnyEvent.model_validate(value)
    except ValidationError:
        return False
    name = value["event"]
    is_text = isinstance(value.get("value"), str) and (name != "metric" or value["value"] not in ("nan", "inf", "-inf"))
    return is_text == (name == "trainer") and all(key in value for key in NEEDED.get(name, ()))


def named(events: Iterable[Event], name: str) -> list[Event]:
    """Return the events of a name."""
    return [event for event in events if event["event"] == name]


def latest(events: Sequence[Event], *names: str) -> Event:
    """Return the last event of a name; empty where there is none."""
    return next((event for event in reversed(events) if event["event"] in names), {})


def since(events: Sequence[Event], phase: str) -> Sequence[Event]:
    """Return the events since a phase began last, all of them where it never did."""
    starts = [number for number, event in enumerate(events) if event.get("phase") == phase]
    return events[starts[-1] :] if starts else events


def attempts(events: Iterable[Event]) -> list[list[Event]]:
    """Return the events of each attempt of the training, up to its end, by time: samples come from another file."""
    all_attempts: list[list[Event]] = []
    current: list[Event] = []
    for event in sorted((event for event in events if "t" in event), key=itemgetter("t")):
        if event["event"] == "phase":
            current = []
            if event["phase"] == "training":
                all_attempts.append(current)
        current.append(event)
        if event["event"] == "end":
            current = []
    return all_attempts


@dataclass
class Curves:
    """Points (step, value) in the order of the log, and the evaluations; ``pace`` in seconds per step."""

    train: list[Point] = field(default_factory=list)
    pace: list[Point] = field(default_factory=list)
    evaluations: list[Evaluation] = field(default_factory=list)
    metrics: dict[str, list[Point]] = field(default_factory=dict)
    """Other curves by metric name, from evaluations and from the program itself."""

    @property
    def validation(self) -> list[Point]:
        return [(one["step"], one["loss"]) for one in self.evaluations if isinstance(one["loss"], float)]


def curves(events: Sequence[Event], eval_steps: int | None = None, metrics: Sequence[Metric] = ()) -> Curves:
    """Return the curves, without what a later attempt repeated.

    The first pace and one after an evaluation include other work and are dropped, unless it is of training only. An attempt evaluates at
    its start, then every ``eval_steps``, and at its end. A step outside the loss lines around the evaluation is wrong; the step of the
    line after it is used then.
    """
    reader = _Reader(eval_steps, metrics)
    for event in events:
        reader.take(event)
    reader.end()
    curves_read = reader.found
    for metric in metrics:
        scores = [(one["step"], one[metric.name]) for one in curves_read.evaluations if metric.name in one]
        if scores:
            curves_read.metrics.setdefault(metric.name, []).extend(scores)
    return curves_read


class _Reader:
    """Reads events one by one; an evaluation stays open until a loss line or the end of its attempt gives its step."""

    def __init__(self, eval_steps: int | None, metrics: Sequence[Metric]) -> None:
        self.eval_steps = eval_steps
        self.scores = {metric.event: metric for metric in metrics}
        self.found, self.resumed = Curves(), None
        self.open: Evaluation = {}
        self._begin(0)

    def take(self, event: Event) -> None:
        step = event.get("step")
        if self.resumed is not None and step is not None and event["event"] in ("train", "validation", "metric"):
            self._forget_repeated(self.resumed, step)
            self.resumed = None
        match event["event"]:
            case "validation":
                self.end()
                self.number += 1
                self.tainted = True
                self.open = {"loss": event["loss"], "t": event.get("t")}
                if step is not None:
                    self._close(step)
            case "train":
                self._close(self._due(step))
                self.logged = step
            case "checkpoint":
                self.saved = step
            case "finished":
                self.finished = True
            case "phase" | "end":
                self.end()
            case "started" | "restored" | "resuming":
                self.end()
                self._begin(step or 0)
                self.resumed = -1 if step is None else step
        self._draw(event, step)

    def end(self) -> None:
        """Close an evaluation that no loss line follows; the last one of a training belongs to its newest checkpoint."""
        self._close(max(self.saved, self.logged) if self.finished else self._due(None))

    def _draw(self, event: Event, step: int) -> None:
        """Add the figures of an event to the curves, or to the open evaluation."""
        match event["event"]:
            case "train" if isinstance(event.get("loss"), float):
                self.found.train.append((step, event["loss"]))
            case "time":
                if not self.tainted or event.get("training_only"):
                    self.found.pace.append((step, event["seconds_per_step"]))
                self.tainted = False
            case "metric":
                points = self.found.metrics.setdefault(event["name"], [])
                if points and points[-1][0] == step:  # The last value of a step is its value.
                    points.pop()
                if not isinstance(event["value"], str):
                    points.append((step, event["value"]))
            case name if self.open and name in self.scores:
                score = self.scores[name]
                if score.key in event:
                    self.open[score.name] = event[score.key]

    def _begin(self, step: int) -> None:
        self.begun = self.logged = self.saved = step
        self.number = 0
        self.finished = False
        self.tainted = True

    def _forget_repeated(self, checkpoint: int, first: int) -> None:
        """Drop what the attempt repeats whose first printed step this is; its checkpoint may have a number of another unit."""
        found = self.found
        printed = [step for step, _ in found.train]
        gap = max((later - earlier for earlier, later in zip(printed, printed[1:], strict=False)), default=1)
        last = checkpoint if checkpoint <= max(printed, default=0) + gap and first <= checkpoint + gap else first - 1
        for points in (found.train, found.pace, *found.metrics.values()):
            points[:] = [point for point in points if point[0] <= last]
        found.evaluations[:] = [one for one in found.evaluations if one["step"] <= last]

    def _due(self, latest: int | None) -> int:
        """Return the step of the open evaluation; ``latest`` is that of the loss line after it."""
        step = self.begun + (self.number - 1) * self.eval_steps if self.eval_steps else -1
        if self.logged <= step and (latest is None or step <= latest):
            return step
        return self.logged if latest is None else latest

    def _close(self, step: int) -> None:
        if self.open:
            self.found.evaluations.append({"step": step, **self.open})
        self.open = {}


def rewound(points: Sequence[Point]) -> tuple[Point, ...]:
    """Drop the points that a later attempt repeated: it begins where the steps go back."""
    kept_points: list[Point] = []
    for point in points:
        while kept_points and kept_points[-1][0] >= point[0]:
            kept_points.pop()
        kept_points.append(point)
    return tuple(kept_points)
