"""`fab plan`: which machines are the better buy for a stack's job, before anything is rented."""

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from typing import Annotated, Any

from microcluster.accounts.registry import account_of
from microcluster.accounts.shared.account import Quote
from microcluster.accounts.shared.api_calls import at_once
from microcluster.accounts.shared.errors import ProviderError
from microcluster.analysis import bottleneck
from microcluster.command_line.command import STACK, AsJson, Option, StackName, local_command
from microcluster.command_line.parts import print_json
from microcluster.config import stack as config
from microcluster.config.stack import Stack
from microcluster.config.variants import Keys, variants
from microcluster.core.home import Home
from microcluster.core.plain_text import count, say
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
    choose,
    fewer_machines,
    is_surely_better,
    worth_above_mbps,
)
from microcluster.planning.prediction import OWN_PACE, MeasuredRun, predict
from microcluster.planning.recorded_runs import LinkKind, kind_of_link, link_kinds, samples_to_loss
from microcluster.planning.run_cost import Span, exactly
from microcluster.run.report import reports_in
from microcluster.setup.environment import ARTIFACTS
from microcluster.setup.errors import CommandFailed, UserMistake

RECORDED = "published seconds of a GPU and the links of recorded runs"
COLUMNS = ("machines", "port", "precision", "s/step", "waits", "steps", "hours", "dollars", "$/M", "")
TEXTS = ("machines", "precision", "")


@local_command
def plan(  # noqa: PLR0917 - Fabric makes an option of each
    stack: StackName = STACK,
    budget: Annotated[float, Option("dollars that guard.budget would allow the whole rental")] = 0.0,
    deadline: Annotated[float, Option("hours from now in which the run has to be over")] = 0.0,
    to_loss: Annotated[float, Option("train to this validation loss instead of job.maxSteps")] = 0.0,
    link: Annotated[float, Option("what the link between the machines carries, in Gb/s, where it is known")] = 0.0,
    live: Annotated[bool, Option("ask the stack's own account for its prices; it needs the account's key")] = False,
    as_json: AsJson = False,
) -> int:
    """Compare what could be rented for the stack's job: hours, dollars, and the better buy; without --live needs no account."""
    own = config.read_file(stack)
    _refuse_unplannable(own)
    known_link, measured = _known_link(own, link), newest_run(stack)
    others = list(variants(own))
    quotes = (asked if live else listed)(own, [other for other, _ in others])
    missing = list(dict.fromkeys(quote.source for quote in quotes if quote.per_hour is None))
    sources = sorted({quote.source for quote in quotes if quote.per_hour is not None})
    if not sources:
        raise CommandFailed(
            f"The account has no price for any choice. {missing[0]} Without it: fab plan --stack {stack}"
        )
    known, unknown = choices(own, measured, zip(others, quotes, strict=True), link=known_link, to_loss=to_loss)
    if to_loss and not known:
        raise UserMistake(
            f"Stack {stack}: nobody recorded how long its job takes to a validation loss of {to_loss:g}, so there is no number. "
            f"docs/cost.md says what was recorded. For the steps of the stack file: fab plan --stack {stack}"
        )
    marks = choose(known, budget=budget, deadline_h=deadline)
    prices = f"{'; '.join(sources)}."
    advice = [*advise(own, known, marks, budget=budget, deadline=deadline), prices]
    if as_json:
        rows = [_facts(row, marks) for row in known] + [{**asdict(offer), "measured": False} for offer in unknown]
        print_json({"stack": stack, "prices": prices, "without_price": missing, "advice": advice, "rows": rows})
        return 0
    if known:
        say(_title(own, known[0], measured, to_loss))
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
    each = (answer["figures"] for answer in report["answers"])  # Earlier versions put the question in other words.
    figures = next((one for one in each if bottleneck.MEASURED in one), {})
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
    own: Stack,
    measured: MeasuredRun | None,
    others: Iterable[tuple[tuple[Stack, Keys], Quote]],
    *,
    link: LinkKind | None = None,
    to_loss: float = 0,
) -> tuple[list[Alternative], list[Offer]]:
    """Return what the job takes on every choice that has a price, and the choices where nobody knows; cheapest first."""
    known, unknown = [], []
    own_pace, workload = _pace(own, measured, link), own.job.workload()
    for (other, keys), quote in others:
        if quote.per_hour is None:
            continue
        cluster, precision = other.cluster, getattr(other.job, "precision", None)
        hardware = cluster.hardware
        offer = Offer(
            hardware.name,
            hardware.gpu,
            hardware.gpus,
            cluster.nodes,
            _port(other),
            precision,
            quote.per_hour,
            keys,
            cluster.prices.by_month,
        )
        pace, samples = _pace(other, measured, link), None
        if pace and own_pace and to_loss:
            samples = samples_to_loss(workload.name, pace.samples, to_loss) if workload else None
        elif pace and own_pace:
            samples = exactly(own.job.max_steps * own_pace.samples)
        if samples:
            before = account_of(cluster.account).hours_before(other.job.workload())
            known.append(Alternative(offer, pace, samples, Span(*before)))
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
    fewer = fewer_machines(rows, mine) if mine else None
    better = fewer if fewer and is_surely_better(fewer, mine) else None
    if better:
        further = _further(better.offer.nodes, mine.offer.nodes)
        found.append(f"Do not rent {further}: {_takes(better)} instead of {_takes(mine)}.{_keys(better)}")
    elif fewer and mine.pace.links:
        fastest_mbps = max(kind.line_mbps for kind in link_kinds(own.job.workload().name))
        found += _by_link(fewer, mine, fastest_mbps)
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


def _by_link(fewer: Alternative, own: Alternative, fastest_mbps: float) -> list[str]:
    """Say from which link on the further machines are worth their price, and what the run takes on each that was recorded."""
    further, said = _further(fewer.offer.nodes, own.offer.nodes), []
    for mbps, gain in zip(worth_above_mbps(fewer, own), ("saves a fifth of the hours", "is cheaper"), strict=True):
        above = f"above {mbps / 1000:.1f} Gb/s" if mbps and mbps <= fastest_mbps else "on no link that was recorded"
        said.append(f"{above} it {gain}")
    rows = {f"On {link}": own.on(link) for link in own.pace.links}
    rows[f"With {count(fewer.offer.nodes, 'machine')}"] = fewer
    lines = [
        f"  {name}: {row.pace.seconds.text('{:.3g}')} s per step, {row.hours.text('{:.1f}')} h, {row.dollars.text('${:,.0f}')}."
        for name, row in rows.items()
    ]
    return [f"Whether to rent {further} depends on the link: {', '.join(said)}.", *lines]


def _pace(stack: Stack, measured: MeasuredRun | None, link: LinkKind | None) -> Pace | None:
    hardware, nodes = stack.cluster.hardware, stack.cluster.nodes
    workload, ranks = stack.job.workload(), hardware.gpus * nodes
    if stack.forecast and workload:
        found = predict(stack.forecast.setup, link)
        links = found.links if nodes > 1 else {}
        return Pace(found.span, found.compute_s, ranks * workload.units, RECORDED, links, found.wire_bytes)
    if measured is None or (hardware.gpu, hardware.gpus * measured.nodes) != (measured.gpu, measured.ranks):
        return None
    step_s = measured.step_on(nodes)
    compute_s = measured.compute_s if step_s else None
    seconds = (
        Span(*(step_s * share for share in OWN_PACE.limits))
        if step_s
        else Span(measured.compute_s, measured.compute_s, math.inf)
    )
    pace = Pace(seconds, compute_s, ranks, f"run {measured.run}")
    if measured.unit != "epoch":
        return pace
    # As many samples, in fewer steps on more ranks.
    share = measured.ranks / ranks
    return replace(pace, seconds=Span(*(each * share for each in seconds.limits)), compute_s=None, samples=1)


def _known_link(own: Stack, gbps: float) -> LinkKind | None:
    """Return the kind of a link that is known, None for 0; refuse one on which the job was never recorded."""
    workload = own.job.workload()
    kinds = link_kinds(workload.name) if workload else ()
    found = kind_of_link(kinds, gbps * 1000)
    if gbps and not found:
        recorded = ", ".join(kind.name for kind in kinds) or "none"
        raise UserMistake(
            f"Stack {own.name}: this job was not recorded on a link of {gbps:g} Gb/s, so there is no number; recorded: {recorded}. "
            f"Over all of them: fab plan --stack {own.name}"
        )
    return found


def _refuse_unplannable(own: Stack) -> None:
    if own.cluster.rent_per_hour is None:
        raise UserMistake(
            f"Stack {own.name}: the {account_of(own.cluster.account).title} account sells nothing, so there is nothing to compare."
        )
    if own.job.max_steps is None:
        raise UserMistake(
            f"Stack {own.name}: job.maxSteps is left out, so nobody knows how long the run is. Set it, then plan again."
        )


def _title(own: Stack, row: Alternative, measured: MeasuredRun | None, to_loss: float) -> str:
    much = f"{row.samples.text('{:,.0f}')} samples"
    if to_loss:
        much = f"to a validation loss of {to_loss:g}, {much}"
    if measured and row.pace.basis != RECORDED:
        much = f"as much as {own.job.max_steps:,} {measured.unit}s of this stack"
    emulated = ", on emulated machines, whose pace is no GPU's" if measured and measured.emulated else ""
    return f"Stack {own.name}: {much}; hours from the order to the end, dollars in started hours; by {row.pace.basis}{emulated}."


def listed(own: Stack, stacks: Sequence[Stack]) -> list[Quote]:
    """Return the prices of the dated catalog."""
    source = account_of(own.cluster.account).price_source.capitalize() + ", without tax"
    return [Quote(stack.cluster.rent_per_hour, source) for stack in stacks]


def asked(own: Stack, stacks: Sequence[Stack]) -> list[Quote]:
    """Ask the stack's own account once for each choice of machines; it verifies every order and takes none."""
    no_key = why_no_key(own.account.name, own.account.config_file)
    if no_key:
        raise UserMistake(f"{no_key} Without --live the plan needs no key: fab plan --stack {own.name}")
    account = open_account(own.account.name, own.account.config_file)

    def ask(stack: Stack) -> Quote:
        machines = f"{stack.cluster.nodes}x {stack.cluster.hardware.name}"
        try:
            quote = account.quote(stack.name, stack.cluster.nodes, stack.cluster.order())
        except (ProviderError, ArithmeticError) as error:
            return Quote(None, f"{machines}: {error}")
        if quote.per_hour is None:
            return Quote(None, f"{machines}: no dollars an hour: {quote.source}.")
        return Quote(quote.per_hour, f"Prices by {quote.source}")

    return at_once(ask, stacks)


def _cells(row: Alternative, marks: Marks) -> dict[str, str]:
    pace = row.pace
    return {
        **_offered(row.offer),
        "s/step": _span(pace.seconds, "{:.3g}"),
        "waits": "?" if row.exposed_share is None else f"{row.exposed_share:.0%}",
        "steps": _span(row.steps, "{:,.0f}"),
        "hours": _span(row.hours, "{:.1f}"),
        "dollars": _span(row.dollars, "{:,.0f}"),
        "$/M": f"{row.per_million:.2f}" if not math.isinf(pace.seconds.high) and pace.basis == RECORDED else "-",
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
        "seconds_per_step": _by_name(row.pace.seconds),
        "links": {link: {"seconds_per_step": _by_name(seconds)} for link, seconds in row.pace.links.items()},
        "exposed_share": row.exposed_share,
        "basis": row.pace.basis,
        "steps": row.steps.usual,
        "steps_limits": _limits(row.steps),
        "hours": _limits(row.hours),
        "dollars": _limits(row.dollars),
        "budget": _finite(row.budget),
        "dollars_per_million_samples": row.per_million if row.pace.basis == RECORDED else None,
        "marks": _marks(row, marks),
        "keys": row.keys,
    }


def _limits(span: Span) -> list[float | None]:
    return [_finite(each) for each in span.limits]


def _by_name(span: Span) -> dict[str, float | None]:
    return dict(zip(("low", "usual", "high"), _limits(span), strict=True))


def _finite(figure: float) -> float | None:
    return None if math.isinf(figure) else round(figure, 4)


def _port(stack: Stack) -> int | None:
    return getattr(stack.cluster, "port_speed_mbps", None)


def _machines(offer: Offer) -> str:
    return f"{offer.nodes}x {offer.machine} ({offer.gpus}x {offer.gpu})"


def _takes(row: Alternative) -> str:
    if math.isinf(row.hours.high):
        return f"at least {row.hours.low:.1f} h and ${row.dollars.low:,.0f}"
    return f"{_span(row.hours, '{:.1f}')} h and {_span(row.dollars, '${:,.0f}')}"


def _span(span: Span, form: str) -> str:
    limits = span.text(form)
    return limits if math.isinf(span.high) or span.low == span.high else f"{form.format(span.usual)} ({limits})"


def _further(fewer: int, nodes: int) -> str:
    return "the second machine" if (fewer, nodes) == (1, 2) else f"{count(nodes - fewer, 'machine')} of the {nodes}"


def _keys(row: Alternative) -> str:
    return f"\n  In the stack file: {', '.join(f'{path}: {value}' for path, value in row.keys.items())}."
