"""`fab plan`: which machines are the better buy for a stack's job, before anything is rented."""

import math
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, replace
from typing import Any

from core.home import Home
from core.plain_text import count, say
from microcluster.accounts.registry import account_of
from microcluster.analysis import bottleneck
from microcluster.commands.command_line import STACK, CommandFailed, UserMistake, local_command, print_json
from microcluster.commands.report import reports_in
from microcluster.config import stack as config
from microcluster.config.stack import Stack
from microcluster.config.variants import Keys, variants
from microcluster.display.console import show_table
from microcluster.lifecycle.account_opening import open_account, why_no_key
from microcluster.planning.alternatives import (
    CHEAPEST,
    FASTEST,
    IN_TIME,
    OWN,
    Alternative,
    Marks,
    Offer,
    Pace,
    Span,
    choose,
    fewer_machines,
)
from microcluster.planning.prediction import BAND, MeasuredRun
from microcluster.setup.environment import ARTIFACTS
from providers.rental.account import Quote
from providers.rental.errors import ProviderError

WORKERS = 8
"""Questions to an account at a time."""
PUBLISHED = "published runs"
COLUMNS = ("machines", "port", "precision", "s/step", "waits", "steps", "hours", "dollars", "$/M samples", "")
TEXTS = ("machines", "precision", "")


@local_command
def plan(
    stack: str = STACK, budget: float = 0.0, deadline: float = 0.0, live: bool = False, as_json: bool = False
) -> int:
    """Compare what could be rented for the stack's job: hours, dollars, and the better buy; without --live needs no account."""
    own = config.read_file(stack)
    _refuse_unplannable(own)
    measured = newest_run(stack)
    others = list(variants(own))
    quotes = (asked if live else listed)(own, [other for other, _ in others])
    missing = list(dict.fromkeys(quote.source for quote in quotes if quote.per_hour is None))
    sources = sorted({quote.source for quote in quotes if quote.per_hour is not None})
    if not sources:
        raise CommandFailed(
            f"The account has no price for any choice. {missing[0]} Without it: fab plan --stack {stack}"
        )
    known, unknown = choices(own, measured, zip(others, quotes, strict=True))
    marks = choose(known, budget=budget, deadline_h=deadline)
    prices = f"{'; '.join(sources)}."
    advice = [*advise(own, known, marks, budget=budget, deadline=deadline), prices]
    if as_json:
        rows = [_facts(row, marks) for row in known] + [{**asdict(offer), "measured": False} for offer in unknown]
        print_json({"stack": stack, "prices": prices, "without_price": missing, "advice": advice, "rows": rows})
        return 0
    if known:
        say(_title(own, known[0], measured))
    cells = [_cells(row, marks) for row in known]
    for offer in unknown:
        cells.append({**_offered(offer), "dollars": f"{offer.per_hour:.3f} an hour", "": "never measured"})
    rows = [[row.get(column, "") for column in COLUMNS] for row in cells]
    show_table(COLUMNS, rows, right=set(COLUMNS) - set(TEXTS))
    say("\n".join([*(f"No price: {each}" for each in missing), *advice]))
    return 0


def newest_run(stack: str) -> MeasuredRun | None:
    """Return the pace of the newest run of the stack that left a report on this computer."""
    reports = reports_in(ARTIFACTS, Home.of().label_of(stack))
    newest_first = sorted(reports, key=lambda path: path.stat().st_mtime, reverse=True)
    for path in newest_first:
        with suppress(LookupError):  # One of an earlier version may not say what is needed.
            found = measured_run(reports[path])
            if found:
                return found
    return None


def measured_run(report: Mapping[str, Any]) -> MeasuredRun | None:
    """Return the pace that a report tells, or None where no step was measured."""
    if not report["seconds_per_step"]:
        return None
    nodes, ranks = len(report["nodes"]), report["world_size"]
    figures = {answer["question"]: answer["figures"] for answer in report["answers"]}.get(bottleneck.QUESTION, {})
    measured, expected = figures.get(bottleneck.MEASURED, {}), figures.get(bottleneck.EXPECTED, {})
    moved = measured.get("bytes_per_step") or expected.get("bytes_per_step")
    return MeasuredRun(
        run=report["run"],
        gpu=report["gpu"],
        ranks=ranks,
        nodes=nodes,
        step_s=report["seconds_per_step"],
        unit=report["unit"],
        gradient_bytes=moved * ranks / (2 * (ranks - 1)) if moved and nodes > 1 else None,
        link_mbps=measured.get("preflight_mbps"),
        emulated=report["emulated"],
    )


def choices(
    own: Stack, measured: MeasuredRun | None, others: Iterable[tuple[tuple[Stack, Keys], Quote]]
) -> tuple[list[Alternative], list[Offer]]:
    """Return what the stack's job takes on every choice that has a price, and the choices where nobody knows; cheapest first."""
    known, unknown = [], []
    own_pace = _pace(own, measured)
    for (other, keys), quote in others:
        if quote.per_hour is None:
            continue
        hardware, precision = other.cluster.hardware, getattr(other.job, "precision", None)
        offer = Offer(
            hardware.name,
            hardware.gpu,
            hardware.gpus,
            other.cluster.nodes,
            _port(other),
            precision,
            quote.per_hour,
            keys,
        )
        pace = _pace(other, measured)
        if pace and own_pace:
            known.append(Alternative(offer, pace, own.job.max_steps * own_pace.samples, _preparation(other)))
        else:
            unknown.append(offer)
    return sorted(known, key=Alternative.by_price), sorted(unknown, key=lambda offer: offer.per_hour)


def advise(own: Stack, rows: Sequence[Alternative], marks: Marks, *, budget: float, deadline: float) -> list[str]:
    """Say in sentences which machines to rent, and which keys of the stack file choose them."""
    if not rows:
        return [
            f"Nothing like this job was ever measured. Train it once for a few steps, best on one machine: `make up STACK={own.name}`; "
            "from then on its report is the basis of this command."
        ]
    found = []
    mine, cheapest = marks[OWN], marks[CHEAPEST]
    better = fewer_machines(rows, mine) if mine else None
    if better:
        further = _further(better.offer.nodes, mine.offer.nodes)
        found.append(f"Do not rent {further}: {_takes(better)} instead of {_takes(mine)}.{_keys(better)}")
    if cheapest is mine:
        found.append(f"Cheapest: {_machines(mine.offer)}, {_takes(mine)}. That is what the stack file says.")
    elif cheapest is not better:
        found.append(f"Cheapest: {_choice(cheapest)}")
    if budget:
        found.append(f"Fastest within ${budget:g}: {_choice(marks[FASTEST])}")
    if deadline:
        found.append(f"Cheapest within {deadline:g} hours: {_choice(marks[IN_TIME])}")
    return found


def _choice(row: Alternative | None) -> str:
    return f"{_machines(row.offer)}, {_takes(row)}.{_keys(row)}" if row else "nothing for sure."


def _pace(stack: Stack, measured: MeasuredRun | None) -> Pace | None:
    hardware, nodes = stack.cluster.hardware, stack.cluster.nodes
    workload, ranks = stack.job.workload(), hardware.gpus * nodes
    if stack.forecast and workload:
        found = stack.forecast.prediction
        return Pace(found.seconds, found.seconds - found.compute_s, ranks * workload.units, BAND, PUBLISHED)
    if measured is None or (hardware.gpu, hardware.gpus * measured.nodes) != (measured.gpu, measured.ranks):
        return None
    seconds = measured.step_on(nodes)
    exposed = seconds - measured.compute_s if seconds else None
    pace = Pace(seconds or measured.compute_s, exposed, ranks, BAND if seconds else None, f"run {measured.run}")
    if measured.unit != "epoch":
        return pace
    # As many samples, in fewer steps on more ranks.
    return replace(pace, seconds=pace.seconds * measured.ranks / ranks, exposed_s=None, samples=1)


def _preparation(stack: Stack) -> Span:
    workload, machines = stack.job.workload(), account_of(stack.cluster.account).preparation_h
    data = workload.data_h if workload else (0, 0, 0)
    return Span(*(a + b for a, b in zip(machines, data, strict=True)))


def _refuse_unplannable(own: Stack) -> None:
    if own.cluster.rent_per_hour is None:
        raise UserMistake(
            f"Stack {own.name}: {account_of(own.cluster.account).title} sells nothing, so there is nothing to compare."
        )
    if own.job.max_steps is None:
        raise UserMistake(
            f"Stack {own.name}: job.maxSteps is left out, so nobody knows how long the run is. Set it, then plan again."
        )


def _title(own: Stack, row: Alternative, measured: MeasuredRun | None) -> str:
    much = f"{row.samples:,.0f} samples"
    if measured and row.pace.basis != PUBLISHED:
        much = f"as much as {own.job.max_steps:,} {measured.unit}s of this stack"
    emulated = ", on emulated machines, whose pace is no GPU's" if measured and measured.emulated else ""
    return f"Stack {own.name}: {much}; hours from the order to the end, dollars in started hours; by {row.pace.basis}{emulated}."


def listed(own: Stack, stacks: Sequence[Stack]) -> list[Quote]:
    """Return the prices of the dated catalog."""
    source = f"List prices of {account_of(own.cluster.account).prices_as_of}, without tax"
    return [Quote(stack.cluster.rent_per_hour, source) for stack in stacks]


def asked(own: Stack, stacks: Sequence[Stack]) -> list[Quote]:
    """Ask the stack's own account once for each choice of machines; it verifies every order and takes none."""
    no_key = why_no_key(own.cluster.account, own.account_config_file)
    if no_key:
        raise UserMistake(f"{no_key} Without --live the plan needs no key: fab plan --stack {own.name}")
    account = open_account(own.cluster.account, own.account_config_file)

    def ask(stack: Stack) -> Quote:
        machines = f"{stack.cluster.nodes}x {stack.cluster.hardware.name}"
        try:
            quote = account.quote(stack.name, stack.cluster.nodes, stack.cluster.order())
        except (ProviderError, ArithmeticError) as error:
            return Quote(None, f"{machines}: {error}")
        if quote.per_hour is None:
            return Quote(None, f"{machines}: no dollars an hour: {quote.source}.")
        return Quote(quote.per_hour, f"Prices by {quote.source}")

    with ThreadPoolExecutor(WORKERS) as pool:
        return list(pool.map(ask, stacks))


def _cells(row: Alternative, marks: Marks) -> dict[str, str]:
    pace = row.pace
    return {
        **_offered(row.offer),
        "s/step": f"{pace.seconds:.3g}",
        "waits": "?" if row.exposed_share is None else f"{row.exposed_share:.0%}",
        "steps": f"{row.steps:,}",
        "hours": _span(row.hours, "{:.1f}"),
        "dollars": _span(row.dollars, "{:,.0f}"),
        "$/M samples": f"{row.per_million:.2f}" if pace.basis == PUBLISHED else "-",
        "": ", ".join(_marks(row, marks)),
    }


def _offered(offer: Offer) -> dict[str, str]:
    return {"machines": _machines(offer), "port": f"{offer.port_mbps or ''}", "precision": offer.precision or ""}


def _marks(row: Alternative, marks: Marks) -> list[str]:
    return [name for name, one in marks.items() if one is row]


def _facts(row: Alternative, marks: Marks) -> dict[str, Any]:
    return {
        **asdict(row.offer),
        "measured": True,
        "seconds_per_step": row.pace.seconds,
        "exposed_share": row.exposed_share,
        "basis": row.pace.basis,
        "steps": row.steps,
        "hours": _limits(row.hours),
        "dollars": _limits(row.dollars),
        "dollars_per_million_samples": row.per_million if row.pace.basis == PUBLISHED else None,
        "marks": _marks(row, marks),
        "keys": row.keys,
    }


def _limits(span: Span) -> list[float | None]:
    return [None if math.isinf(each) else round(each, 3) for each in (span.low, span.usual, span.high)]


def _port(stack: Stack) -> int | None:
    return getattr(stack.cluster, "port_speed_mbps", None)


def _machines(offer: Offer) -> str:
    return f"{offer.nodes}x {offer.machine} ({offer.gpus}x {offer.gpu})"


def _takes(row: Alternative) -> str:
    if math.isinf(row.hours.high):
        return f"at least {row.hours.low:.1f} h and ${row.dollars.low:,.0f}"
    return f"{row.hours.usual:.1f} h and ${row.dollars.usual:,.0f}"


def _span(span: Span, form: str) -> str:
    if math.isinf(span.high):
        return f"at least {form.format(span.low)}"
    low, usual, high = (form.format(each) for each in (span.low, span.usual, span.high))
    return usual if low == high else f"{usual} ({low} to {high})"


def _further(fewer: int, nodes: int) -> str:
    return "the second machine" if (fewer, nodes) == (1, 2) else f"{count(nodes - fewer, 'machine')} of the {nodes}"


def _keys(row: Alternative) -> str:
    return f"\n  In the stack file: {', '.join(f'{path}: {value}' for path, value in row.keys.items())}."
