"""`fab compare RUN RUN`: what runs took to the same validation loss, and which was the better buy; needs no machine."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from core.plain_text import printable, say
from microcluster.analysis import comparison
from microcluster.analysis.comparison import Compared
from microcluster.commands.command import UserMistake, local_command, print_json
from microcluster.commands.report import reports_in
from microcluster.commands.screen import show_table
from microcluster.setup.environment import ARTIFACTS


@local_command
def compare(runs: Sequence[str] | None = None, as_json: bool = False) -> int:
    """Compare runs: dollars and hours to the same validation loss, set-up included, also as a page; reads their reports only."""
    known = {path.parent.name: (path.parent.parent.name, one) for path, one in reports_in(ARTIFACTS).items()}
    chosen = list(dict.fromkeys(_chosen(name, known) for name in runs or ()))
    if len(chosen) < 2:
        raise UserMistake("fab compare takes at least two runs; for example: fab compare RUN RUN")
    reports = [known[name][1] for name in chosen]
    try:
        found = [comparison.compared(one) for one in reports]
    except LookupError as missing:
        raise UserMistake(
            f"A report of {', '.join(chosen)} says no {missing}: it is of another version. `fab report --stack STACK` writes it again."
        ) from missing
    told = comparison.better_buy(found)
    heads, rows = comparison.table(found)
    path = ARTIFACTS / "comparisons" / f"{'-'.join(one.run for one in found)}.html"
    _draw(path, found, [told], list(zip(heads, *rows, strict=True)))
    if as_json:
        each = [{**asdict(one), "per_step": one.per_step} for one in found]
        print_json({"runs": each, "loss": comparison.same_loss(found), "verdict": told, "page": path})
        return 0
    show_table(heads, rows, right=heads[3:])
    say(f"{told}\npage: {path}")
    return 0


def _draw(path: Path, runs: Sequence[Compared], told: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from microcluster.commands.report_page import curve, figures  # noqa: PLC0415 - drawing takes time at every start

    by_hours = {one.name: one.losses for one in runs}
    by_dollars = {
        one.name: [(cost, loss) for hours, loss in one.losses if (cost := one.dollars_of(hours)) is not None]
        for one in runs
    }
    charts = [
        ("Validation loss by hours since the order", curve("loss", by_hours, along="hours")),
        ("Validation loss by dollars, in started hours", curve("loss", by_dollars, along="dollars")),
    ]
    title = f"Runs {', '.join(one.run for one in runs)}"
    figures(path, title, "Read from the reports of the runs", told=told, charts=charts, tables=[("Runs", rows)])


def _chosen(name: str, reports: Mapping[str, tuple[str, Mapping[str, Any]]]) -> str:
    """Return the whole name of a run with a report here; ``name`` is how it begins."""
    matching = [run for run in reports if name and run.startswith(name)]
    if len(matching) != 1:
        known = ", ".join(f"{run} ({stack})" for run, (stack, _) in reports.items()) or "none"
        how = "begins more than one run" if matching else "is no run with a report on this computer"
        raise UserMistake(
            f"{printable(name)!r} {how}. Runs with a report: {known}. Write one while its machines are there: fab report --stack STACK"
        )
    return matching[0]
