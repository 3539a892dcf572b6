"""`fab compare RUN RUN`: what runs took to the same validation loss, and which was the better buy; needs no machine."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from microcluster.analysis import comparison
from microcluster.analysis.comparison import ReportedRun
from microcluster.command_line.command import AsJson, Option, local_command
from microcluster.command_line.parts import print_json
from microcluster.core.plain_text import printable, say
from microcluster.display.console import show_table
from microcluster.run.report import reports_in
from microcluster.setup.environment import ARTIFACTS
from microcluster.setup.errors import UserMistake


@local_command
def compare(
    runs: Annotated[
        Sequence[str] | None,
        Option("two or more runs, or how their names begin; the option itself may be left out", may_be_left_out=True),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Compare runs: dollars and hours to the same validation loss, set-up included, also as a page; reads their reports only."""
    reports = reports_in(ARTIFACTS)
    chosen = list(dict.fromkeys(_chosen(name, reports) for name in runs or ()))
    if len(chosen) < 2:
        raise UserMistake("fab compare takes at least two runs; for example: fab compare RUN RUN")
    try:
        found = [comparison.reported(reports[path]) for path in chosen]
    except LookupError as missing:
        raise UserMistake(
            f"A report of {', '.join(path.parent.name for path in chosen)} says no {missing}: it is of another version. `fab report --stack STACK` writes it again."
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


def _draw(path: Path, runs: Sequence[ReportedRun], told: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from microcluster.display.report_page import curve, figures  # noqa: PLC0415 - drawing takes time at every start

    by_hours = {one.name: one.losses for one in runs}
    priced = [one for one in runs if one.per_hour is not None]
    by_dollars = {one.name: [(one.dollars_of(hours), loss) for hours, loss in one.losses] for one in priced}
    charts = [
        ("Validation loss by hours since the order", curve("loss", by_hours, along="hours")),
        ("Validation loss by dollars, in started hours", curve("loss", by_dollars, along="dollars")),
    ]
    title = f"Runs {', '.join(one.run for one in runs)}"
    figures(path, title, "Read from the reports of the runs", told=told, charts=charts, tables=[("Runs", rows)])


def _chosen(name: str, reports: Iterable[Path]) -> Path:
    """Return the one report here of a run whose name begins with ``name``."""
    matching = [path for path in reports if name and path.parent.name.startswith(name)]
    if len(matching) != 1:
        known = ", ".join(f"{path.parent.name} ({path.parent.parent.name})" for path in reports) or "none"
        how = "begins more than one run" if matching else "is no run with a report on this computer"
        raise UserMistake(
            f"{printable(name)!r} {how}. Runs with a report: {known}. Write one while its machines are there: fab report --stack STACK"
        )
    return matching[0]
