"""The step of each evaluation: the log does not name it, so it follows from the schedule and the lines around it. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from microcluster.analysis.events import Event
from microcluster.jobs.contract import Metric


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
