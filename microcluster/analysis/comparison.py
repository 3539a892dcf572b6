"""Runs beside each other, from what `fab report` wrote of each: what they took to the same loss, and which was the better buy. Pure."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

HOUR_S = 3600
UNKNOWN = "unknown"


@dataclass(frozen=True)
class Compared:
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
        """What people call it."""
        return f"{self.run} ({self.stack})"

    def hours_to(self, loss: float | None) -> float | None:
        """Hours to a validation loss, set-up included; None if it was never reached, or nobody knows when."""
        return next((hours for hours, reached in self.losses if loss is not None and reached <= loss), None)

    def dollars_to(self, loss: float | None) -> float | None:
        """Dollars to a validation loss, in started hours of all machines."""
        hours = self.hours_to(loss)
        return None if hours is None else self.dollars_of(hours)

    def dollars_of(self, hours: float) -> float | None:
        """Dollars of so many hours: a started one counts whole."""
        return None if self.per_hour is None else max(math.ceil(hours), 1) * self.per_hour

    @property
    def per_step(self) -> float | None:
        """Dollars of a step."""
        return None if self.seconds is None or self.per_hour is None else self.per_hour * self.seconds / HOUR_S


def compared(facts: Mapping[str, Any]) -> Compared:
    """Return a run from the content of its ``report.json``."""
    cost, metrics = facts["cost"], facts["metrics"]
    return Compared(
        run=facts["run"],
        stack=facts["stack"],
        state=facts["state"],
        trains=facts["trains"],
        machines=len(facts["nodes"]),
        ranks=facts["world_size"],
        unit=facts["unit"],
        steps=facts["step"],
        seconds=facts["seconds_per_step"],
        per_hour=_number(cost["per_hour"]),
        dollars=_number(cost["so_far"]),
        emulated=cost["emulated"],
        results={label: metrics[name] for name, label in facts["labels"].items() if name in metrics},
        losses=_losses(facts),
    )


def _losses(facts: Mapping[str, Any]) -> tuple[tuple[float, float], ...]:
    opened = min((row["opened"] for row in facts.get("bill") or () if row["opened"]), default=None)
    measured = [(one["t"], one["loss"]) for one in facts.get("evaluations") or () if one["t"]]
    if opened is None or any(t < opened for t, _ in measured):  # The clocks of account and machines differ.
        return ()
    return tuple(((t - opened) / HOUR_S, loss) for t, loss in measured if isinstance(loss, int | float))


def same_loss(runs: Sequence[Compared]) -> float | None:
    """Return the lowest validation loss that all of them reached."""
    lowest = [min((loss for _, loss in one.losses), default=None) for one in runs]
    return None if None in lowest else max(lowest)


def table(runs: Sequence[Compared]) -> tuple[list[str], list[list[str]]]:
    """Return the heads and the rows, one for each run, by machines."""
    loss = same_loss(runs)
    rows = [_row(one, loss) for one in sorted(runs, key=lambda one: (one.machines, one.ranks))]
    heads = list(dict.fromkeys(head for row in rows for head in row))
    return heads, [[row.get(head, "") for head in heads] for row in rows]


def _row(one: Compared, loss: float | None) -> dict[str, str]:
    row = {
        "run": one.run,
        "stack": one.stack,
        "state": one.state,
        "machines": str(one.machines),
        "ranks": str(one.ranks),
    }
    row[f"{one.unit}s"] = _text(one.steps, "")
    for label, value in one.results.items():
        row[label] = f"{value:.2f}"
    if loss is not None:
        row[f"h to {loss:.4g}"] = _text(one.hours_to(loss), ".2f")
        row[f"$ to {loss:.4g}"] = _dollars(one.dollars_to(loss))
    row[f"s/{one.unit}"] = _text(one.seconds, ".1f")
    row[f"$/{one.unit}"] = _dollars(one.per_step, 4)
    return row | {"$/hour": _dollars(one.per_hour), "$ so far": _dollars(one.dollars)}


def better_buy(runs: Sequence[Compared]) -> str:
    """Say which run took fewer dollars to the same validation loss, set-up included; of equal ones, fewer hours."""
    loss = same_loss(runs)
    if loss is None:
        return "Which was the better buy is unknown: a run has no validation loss whose time is known."
    if any(one.per_hour is None for one in runs):
        return "Which was the better buy is unknown: a run has no price."
    best, *others = sorted(runs, key=lambda one: (one.dollars_to(loss), one.hours_to(loss)))
    beside = " and ".join(f"{_took(one, loss)} with {one.name}" for one in others)
    different = (
        "" if len({one.trains for one in runs}) == 1 else " They train different things, so compare losses with care."
    )
    emulated = " The figures are those of emulated machines." if any(one.emulated for one in runs) else ""
    return f"The better buy is {best.name}: to a validation loss of {loss:.4g} it took {_took(best, loss)} from the order on, instead of {beside}.{different}{emulated}"


def _took(one: Compared, loss: float) -> str:
    return f"{_dollars(one.dollars_to(loss))} and {_text(one.hours_to(loss), '.2f')} h"


def _number(value: str | None) -> float | None:
    return None if value is None else float(value)


def _text(value: float | None, shape: str) -> str:
    return UNKNOWN if value is None else f"{value:{shape}}"


def _dollars(value: float | None, digits: int = 2) -> str:
    return UNKNOWN if value is None else f"${value:.{digits}f}"
