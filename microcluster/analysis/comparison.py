"""Runs beside each other, from what `fab report` wrote of each: what they took to the same loss, and which was the better buy. Pure."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

HOUR_S = 3600
UNKNOWN = "unknown"


@dataclass(frozen=True)
class ReportedRun:
    """One run.

    Attributes:
        trains: model, data and batch in words: runs that train the same differ in machines alone.
        unit, steps: what a step is, and how many were made.
        seconds: of a step, training only.
        per_hour, dollars: of all machines, and of the run so far.
        results: the last value of each metric, by its label.
        losses: hours since the first machine was ordered, and the validation loss that was measured then.
    """

    run: str
    stack: str
    state: str
    trains: str
    machines: int
    ranks: int
    unit: str
    steps: int | None
    seconds: float | None
    per_hour: float | None
    dollars: float | None
    emulated: bool
    results: Mapping[str, float]
    losses: tuple[tuple[float, float], ...] = ()

    @property
    def name(self) -> str:
        """Display name of the run."""
        return f"{self.run} ({self.stack})"

    def hours_to(self, loss: float) -> float:
        """Hours to a validation loss that it has reached, set-up included."""
        return next(hours for hours, reached in self.losses if reached <= loss)

    def dollars_to(self, loss: float) -> float | None:
        """Dollars to a validation loss, in started hours of all machines."""
        return self.dollars_of(self.hours_to(loss))

    def dollars_of(self, hours: float) -> float | None:
        """Dollars of so many hours: a started one counts whole."""
        return None if self.per_hour is None else max(math.ceil(hours), 1) * self.per_hour

    @property
    def per_step(self) -> float | None:
        """Dollars of a step."""
        return None if self.seconds is None or self.per_hour is None else self.per_hour * self.seconds / HOUR_S


def reported(facts: Mapping[str, Any]) -> ReportedRun:
    """Return a run from the content of its ``report.json``."""
    cost, metrics = facts["cost"], facts["metrics"]
    return ReportedRun(
        run=facts["run"],
        stack=facts["stack"],
        state=facts["state"],
        trains=facts["trains"],
        machines=len(facts["nodes"]),
        ranks=facts["world_size"],
        unit=facts["unit"],
        steps=facts["step"],
        seconds=facts["seconds_per_step"],
        per_hour=cost["per_hour"] and float(cost["per_hour"]),
        dollars=cost["so_far"] and float(cost["so_far"]),
        emulated=cost["emulated"],
        results={label: metrics[name] for name, label in facts["labels"].items() if name in metrics},
        losses=_losses(facts),
    )


def _losses(facts: Mapping[str, Any]) -> tuple[tuple[float, float], ...]:
    opened = min((row["opened"] for row in facts["bill"] if row["opened"]), default=math.inf)
    measured = [one for one in facts["evaluations"] if one["t"]]
    if any(one["t"] < opened for one in measured):  # The clocks of account and machines differ, or nothing was billed.
        return ()
    return tuple(((one["t"] - opened) / HOUR_S, one["loss"]) for one in measured if not isinstance(one["loss"], str))


def same_loss(runs: Sequence[ReportedRun]) -> float | None:
    """Return the lowest validation loss that all of them reached."""
    lowest = [min((loss for _, loss in one.losses), default=None) for one in runs]
    return None if None in lowest else max(lowest)


def table(runs: Sequence[ReportedRun]) -> tuple[list[str], list[list[str]]]:
    """Return the heads and the rows, one for each run, by machines."""
    loss = same_loss(runs)
    rows = [_row(one, loss) for one in sorted(runs, key=lambda one: (one.machines, one.ranks))]
    heads = list(dict.fromkeys(head for row in rows for head in row))
    return heads, [[row.get(head, "") for head in heads] for row in rows]


def _row(one: ReportedRun, loss: float | None) -> dict[str, str]:
    row = {name: str(getattr(one, name)) for name in ("run", "stack", "state", "machines", "ranks")}
    row[f"{one.unit}s"] = _text(one.steps, "")
    row |= {label: f"{value:.2f}" for label, value in one.results.items()}
    if loss is not None:
        row[f"h to {loss:.4g}"] = f"{one.hours_to(loss):.2f}"
        row[f"$ to {loss:.4g}"] = _dollars(one.dollars_to(loss))
    row[f"s/{one.unit}"] = _text(one.seconds, ".1f")
    row[f"$/{one.unit}"] = _dollars(one.per_step, 4)
    return row | {"$/hour": _dollars(one.per_hour), "$ so far": _dollars(one.dollars)}


def better_buy(runs: Sequence[ReportedRun]) -> str:
    """Say which run took fewer dollars to the same validation loss, set-up included; of equal ones, fewer hours."""
    loss = same_loss(runs)
    if loss is None:
        return "Which was the better buy is unknown: a run has no validation loss whose time is known."
    if any(one.per_hour is None for one in runs):
        return "Which was the better buy is unknown: a run has no price."
    best, *others = sorted(runs, key=lambda one: (one.dollars_to(loss), one.hours_to(loss)))
    beside = " and ".join(f"{_took(one, loss)} with {one.name}" for one in others)
    sentence = f"The better buy is {best.name}: to a validation loss of {loss:.4g} it took {_took(best, loss)} from the order on, instead of {beside}."
    if any(one.trains != best.trains for one in others):
        sentence += " They train different things, so compare losses with care."
    if any(one.emulated for one in runs):
        sentence += " The figures are those of emulated machines."
    return sentence


def _took(one: ReportedRun, loss: float) -> str:
    return f"{_dollars(one.dollars_to(loss))} and {one.hours_to(loss):.2f} h"


def _text(value: float | None, shape: str) -> str:
    return UNKNOWN if value is None else f"{value:{shape}}"


def _dollars(value: float | None, digits: int = 2) -> str:
    return UNKNOWN if value is None else f"${value:.{digits}f}"
