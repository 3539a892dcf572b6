"""Runs beside each other, from what `fab report` wrote of each: results, time and dollars, and whether more machines paid. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from core.plain_text import count

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

    @property
    def per_step(self) -> float | None:
        """Dollars of a step."""
        return None if self.seconds is None or self.per_hour is None else self.per_hour * self.seconds / HOUR_S


def compared(facts: Mapping[str, Any]) -> Compared:
    """Return a run from the content of its ``report.json``."""
    cost, metrics = facts["cost"], facts["metrics"]
    labels = facts["labels"]
    return Compared(
        *(facts["run"], facts["stack"], facts["state"], facts["trains"]),
        *(len(facts["nodes"]), facts["world_size"], facts["unit"], facts["step"], facts["seconds_per_step"]),
        *(_number(cost["per_hour"]), _number(cost["so_far"]), cost["emulated"]),
        {label: metrics[name] for name, label in labels.items() if name in metrics},
    )


def table(runs: Sequence[Compared]) -> tuple[list[str], list[list[str]]]:
    """Return the heads and the rows, one for each run, by machines."""
    labels = list(dict.fromkeys(label for one in runs for label in one.results))
    unit = runs[0].unit
    heads = ["run", "stack", "state", "machines", "ranks", f"{unit}s", *labels]
    rows = [
        [
            *(one.run, one.stack, one.state, str(one.machines), str(one.ranks), _text(one.steps, "")),
            *(_text(one.results.get(label), ".2f") for label in labels),
            *(_text(one.seconds, ".1f"), _dollars(one.per_step, 4), _dollars(one.per_hour), _dollars(one.dollars)),
        ]
        for one in _by_machines(runs)
    ]
    return [*heads, f"s/{unit}", f"$/{unit}", "$/hour", "$ so far"], rows


def verdicts(runs: Sequence[Compared]) -> list[str]:
    """Say of each step from fewer to more machines whether it paid."""
    if len({one.trains for one in runs}) > 1:
        return ["Whether more machines pay is unknown: the runs do not train the same."]
    return [_verdict(few, many) for few, many in pairwise(_by_machines(runs)) if few.machines < many.machines]


def _verdict(few: Compared, many: Compared) -> str:
    more = "The second machine" if (few.machines, many.machines) == (1, 2) else f"{count(many.machines, 'machine')}"
    pays, pay_not = ("pays", "does not pay") if more.startswith("The") else ("pay", "do not pay")
    beside = "" if more.startswith("The") else f" instead of {few.machines}"
    if few.seconds is None or many.seconds is None:
        return f"Whether {more[0].lower()}{more[1:]} {pays} is unknown: a run has no time of {_article(few.unit)} {few.unit}."
    slower, unit = many.seconds / few.seconds, few.unit
    figures = f"{_article(unit)} {unit} takes {many.seconds:.1f} s instead of {few.seconds:.1f} s ({slower:.2f} times as long)"
    one, other = few.per_step, many.per_step
    if one is not None and other is not None:
        figures += f" and costs ${other:.4f} instead of ${one:.4f}"
    if slower >= 1:
        judged = pay_not
    elif one is None or other is None or other > one:
        judged = f"{pays} in time only"
    else:
        judged = f"{pays} in time and in money"
    label = " The figures are those of emulated machines." if few.emulated or many.emulated else ""
    return f"{more}{beside} {judged}: {figures}.{label}"


def _by_machines(runs: Sequence[Compared]) -> list[Compared]:
    return sorted(runs, key=lambda one: (one.machines, one.ranks))


def _article(unit: str) -> str:
    return "an" if unit[0] in "aeiou" else "a"


def _number(value: str | None) -> float | None:
    return None if value is None else float(value)


def _text(value: float | None, shape: str) -> str:
    return UNKNOWN if value is None else f"{value:{shape}}"


def _dollars(value: float | None, digits: int = 2) -> str:
    return UNKNOWN if value is None else f"${value:.{digits}f}"
