"""`fab plan`: which machines are the better buy for a stack's job, before anything is rented."""

import math
import textwrap
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from core.plain_text import count, say
from microcluster.accounts.registry import account_of
from microcluster.analysis import bottleneck
from microcluster.commands.command import STACK, CommandFailed, UserMistake, local_command, print_json
from microcluster.commands.report import reports_in
from microcluster.commands.screen import show_table
from microcluster.config import stack as config
from microcluster.config.stack import Stack
from microcluster.config.variants import variants
from microcluster.lifecycle.accounts import open_account, why_no_key
from microcluster.planning.alternatives import (
    Alternative,
    Choice,
    Offer,
    Pace,
    Span,
    alternative,
    choose,
    fewer_machines,
)
from microcluster.planning.prediction import BAND, CARRIED_MBPS, MeasuredRun
from microcluster.setup.environment import ARTIFACTS
from providers.rental.errors import ProviderError

WIDTH, KEYS_WIDTH = 160, 120
WORKERS = 8
"""Questions to an account at a time."""
IN_STACK_FILE = " In the stack file: "
PUBLISHED = "published runs"
COLUMNS = (
    *(("machines", "left"), ("port", "right"), ("precision", "left"), ("s/step", "right"), ("waits", "right")),
    *(("steps", "right"), ("hours", "right"), ("dollars", "right"), ("$/M samples", "right"), ("", "left")),
)
PRICE_COLUMNS = (("machines", "left"), ("port", "right"), ("dollars an hour", "right"))


@dataclass(frozen=True)
class Row:
    """One choice of machines; ``found`` is None where nothing like it was ever measured."""

    stack: Stack
    offer: Offer
    found: Alternative | None


@local_command
def plan(
    stack: str = STACK, budget: float = 0.0, deadline: float = 0.0, live: bool = False, as_json: bool = False
) -> int:
    """Compare what could be rented for the stack's job: hours, dollars, and the better buy; without --live needs no account."""
    own = config.read_file(stack)
    _refuse_unplannable(own, budget, deadline)
    measured = newest_run(stack)
    prices = Asked(own) if live else Listed(own)
    rows = rows_of(own, measured, prices)
    if not rows and prices.missing:
        raise CommandFailed(
            f"The account has no price for any choice. {prices.missing[0]} Without it: fab plan --stack {stack}"
        )
    known = [row.found for row in rows if row.found]
    mine = next((row.found for row in rows if (row.stack.cluster, row.stack.job) == (own.cluster, own.job)), None)
    choice = choose(known, budget=budget or None, deadline_h=deadline or None)
    advice = advise(own, known, mine, choice, budget=budget, deadline=deadline)
    advice.append(f"{prices.source}.")
    if as_json:
        print_json(
            {
                "stack": stack,
                "prices": f"{prices.source}.",
                "without_price": prices.missing,
                "advice": advice,
                "rows": [_facts(row, choice, mine) for row in rows],
            }
        )
        return 0
    if known:
        say(_title(own, known[0], measured))
        listed = sorted(known, key=lambda row: (row.dollars.usual, row.hours.usual))
        show_table(COLUMNS, [_cells(row, choice, mine) for row in listed], width=WIDTH, box=None, pad_edge=False)
    else:
        cheapest_first = sorted((row.offer for row in rows), key=lambda offer: offer.per_hour)
        priced = [(_machines(offer), f"{offer.port_mbps or ''}", f"{offer.per_hour:.3f}") for offer in cheapest_first]
        show_table(PRICE_COLUMNS, list(dict.fromkeys(priced)), width=WIDTH, box=None, pad_edge=False)
    unknown = sorted({_measure(row) for row in rows if not row.found})
    if known and unknown:
        say(f"Never measured, so without hours: {', '.join(unknown)}.")
    say("".join(f"No price: {each}\n" for each in prices.missing), end="")
    for line in advice:
        found, _, keys = line.partition(IN_STACK_FILE)
        say(found)
        if keys:
            say(
                textwrap.fill(
                    f"{IN_STACK_FILE.strip()} {keys}", KEYS_WIDTH, initial_indent="  ", subsequent_indent="    "
                )
            )
    return 0


def newest_run(stack: str) -> MeasuredRun | None:
    """Return the pace of the newest run of the stack that left a report on this computer."""
    reports = reports_in(ARTIFACTS, stack)
    newest_first = sorted(reports, key=lambda path: path.stat().st_mtime, reverse=True)
    return next(filter(None, (measured_run(reports[path]) for path in newest_first)), None)


def measured_run(report: Mapping[str, Any]) -> MeasuredRun | None:
    """Return the pace that a report tells, or None where no step was measured."""
    nodes, ranks = len(report.get("nodes") or ()), report.get("world_size")
    if not report.get("seconds_per_step") or not nodes or not ranks:
        return None
    network = next(
        (each["figures"] for each in report.get("answers", ()) if each["question"] == bottleneck.QUESTION), {}
    )
    moved = (network.get(bottleneck.MEASURED) or {}).get("bytes_per_step")
    moved = moved or (network.get(bottleneck.EXPECTED) or {}).get("bytes_per_step")
    return MeasuredRun(
        run=report["run"],
        gpu=report.get("gpu") or "",
        ranks=ranks,
        nodes=nodes,
        step_s=report["seconds_per_step"],
        unit=report.get("unit") or "step",
        gradient_bytes=moved * ranks / (2 * (ranks - 1)) if moved and nodes > 1 else None,
        link_mbps=(network.get(bottleneck.MEASURED) or {}).get("preflight_mbps"),
        emulated=bool(report.get("emulated")),
    )


def rows_of(own: Stack, measured: MeasuredRun | None, prices: "Listed") -> list[Row]:
    """Return every choice that the stack's account sells, with what the stack's job takes there."""
    found, own_pace = [], _pace(own, measured)
    samples = own.job.max_steps * own_pace.samples if own_pace else 0
    others = list(variants(own))
    for (other, keys), price in zip(others, prices.of([other for other, _ in others]), strict=True):
        if price is None:
            continue
        hardware = other.cluster.hardware
        port = getattr(other.cluster, "port_speed_mbps", None)
        offer = Offer(hardware.name, hardware.gpu, hardware.gpus, other.cluster.nodes, port, price, keys)
        pace = _pace(other, measured)
        row = alternative(offer, pace, samples, _preparation(other)) if pace and own_pace else None
        found.append(Row(other, offer, row))
    return found


def advise(
    own: Stack, rows: Sequence[Alternative], mine: Alternative | None, choice: Choice, *, budget: float, deadline: float
) -> list[str]:
    """Say in sentences which machines to rent, and which keys of the stack file choose them."""
    found = []
    better = fewer_machines(rows, mine) if mine else None
    if mine and better:
        found.append(
            f"Do not rent {_further(better.offer.nodes, mine.offer.nodes)}: {_takes(better)} instead of {_takes(mine)}.{_keys(better)}"
        )
    cheapest = choice.cheapest
    if cheapest and cheapest is not better:
        yours = " That is what the stack file says." if cheapest is mine else _keys(cheapest)
        found.append(f"Cheapest: {_machines(cheapest.offer)}, {_takes(cheapest)}.{yours}")
    if budget and rows:
        found.append(
            _within(
                choice.fastest_within_budget, f"Fastest within ${budget:g}", f"Nothing surely stays within ${budget:g}."
            )
        )
    if deadline and rows:
        nothing = f"Nothing is surely done within {deadline:g} hours."
        found.append(_within(choice.cheapest_before_deadline, f"Cheapest within {deadline:g} hours", nothing))
    if not rows:
        found.append(
            f"Nothing like this job was ever measured. Train it once for a few steps, best on one machine: `make up STACK={own.name}`; "
            "from then on its report is the basis of this command."
        )
    return found


def _pace(stack: Stack, measured: MeasuredRun | None) -> Pace | None:
    hardware, nodes = stack.cluster.hardware, stack.cluster.nodes
    workload = stack.job.workload()
    if stack.forecast and workload:
        found = stack.forecast.prediction
        ranks = hardware.gpus * nodes
        return Pace(
            found.seconds, found.seconds - found.compute_s, ranks * workload.units, BAND, PUBLISHED, workload.precision
        )
    if measured is None or (hardware.gpu, hardware.gpus * measured.nodes) != (measured.gpu, measured.ranks):
        return None
    port = getattr(stack.cluster, "port_speed_mbps", None)
    seconds = measured.step_on(nodes, CARRIED_MBPS.get(port, port) if port else None)
    ranks, basis = hardware.gpus * nodes, f"run {measured.run}"
    if measured.unit == "epoch":  # As many samples, in fewer steps on more ranks.
        ratio = measured.ranks / ranks
        return Pace((seconds or measured.compute_s) * ratio, None, 1, BAND if seconds else None, basis)
    exposed = seconds - measured.compute_s if seconds else None
    return Pace(seconds or measured.compute_s, exposed, ranks, BAND if seconds else None, basis)


def _preparation(stack: Stack) -> Span:
    workload, machines = stack.job.workload(), account_of(stack.cluster.account).preparation_h
    data = workload.data_h if workload else (0, 0, 0)
    return Span(*(a + b for a, b in zip(machines, data, strict=True)))


def _refuse_unplannable(own: Stack, budget: float, deadline: float) -> None:
    if budget < 0 or deadline < 0:
        raise UserMistake(
            "--budget takes dollars and --deadline hours, both above 0. For example: fab plan --budget 250 --deadline 24"
        )
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


class Listed:
    """The prices of the dated catalog."""

    def __init__(self, own: Stack) -> None:
        self.source = f"List prices of {account_of(own.cluster.account).prices_as_of}, without tax"
        """Who gave them."""
        self.missing: list[str] = []
        """What has no price, and why."""

    def of(self, stacks: Sequence[Stack]) -> list[Decimal | None]:
        """Return the price of an hour for each; None where nobody names one."""
        return [stack.cluster.rent_per_hour for stack in stacks]


class Asked(Listed):
    """The prices of the stack's own account, which verifies every order and takes none."""

    def __init__(self, own: Stack) -> None:
        super().__init__(own)
        missing = why_no_key(own.cluster.account, own.account_config_file)
        if missing:
            raise UserMistake(f"{missing} Without --live the plan needs no key: fab plan --stack {own.name}")
        self._account = open_account(own.cluster.account, own.account_config_file)

    def of(self, stacks: Sequence[Stack]) -> list[Decimal | None]:
        """Ask once for each choice of machines."""
        orders = {repr((each.cluster.nodes, each.cluster.order())): each for each in stacks}
        with ThreadPoolExecutor(WORKERS) as pool:
            found = dict(zip(orders, pool.map(self._ask, orders.values()), strict=True))
        return [found[repr((each.cluster.nodes, each.cluster.order()))] for each in stacks]

    def _ask(self, stack: Stack) -> Decimal | None:
        nodes, machine = stack.cluster.nodes, stack.cluster.hardware.name
        try:
            quote = self._account.quote(stack.name, nodes, stack.cluster.order())
        except (ProviderError, ArithmeticError) as error:
            self.missing.append(f"{nodes}x {machine}: {error}")
            return None
        if quote.per_hour is None:
            self.missing.append(f"{nodes}x {machine}: no dollars an hour: {quote.source}.")
        else:
            self.source = f"Prices by {quote.source}"
        return quote.per_hour


def _cells(row: Alternative, choice: Choice, mine: Alternative | None) -> tuple[str, ...]:
    offer, pace = row.offer, row.pace
    share = "?" if row.exposed_share is None else f"{row.exposed_share:.0%}"
    exact = pace.basis == PUBLISHED
    return (
        *(_machines(offer), f"{offer.port_mbps or ''}", pace.precision or "", f"{pace.seconds:.3g}", share),
        *(f"{row.steps:,}", _span(row.hours, "{:.1f}"), _span(row.dollars, "{:,.0f}")),
        *(f"{row.per_million:.2f}" if exact else "-", ", ".join(_marks(row, choice, mine))),
    )


def _marks(row: Alternative, choice: Choice, mine: Alternative | None) -> list[str]:
    named = {
        "this stack": mine,
        "cheapest": choice.cheapest,
        "fastest within budget": choice.fastest_within_budget,
        "cheapest before deadline": choice.cheapest_before_deadline,
    }
    return [name for name, one in named.items() if one is row]


def _facts(row: Row, choice: Choice, mine: Alternative | None) -> dict[str, Any]:
    offer, found = row.offer, row.found
    facts = {
        "machine": offer.machine,
        "gpu": offer.gpu,
        "gpus": offer.gpus,
        "nodes": offer.nodes,
        "port_mbps": offer.port_mbps,
        "per_hour": offer.per_hour,
        "precision": _precision(row.stack),
    }
    if found is None:
        return {**facts, "measured": False, "keys": dict(offer.keys)}
    return {
        **facts,
        "measured": True,
        "seconds_per_step": found.pace.seconds,
        "exposed_share": found.exposed_share,
        "basis": found.pace.basis,
        "steps": found.steps,
        "hours": _limits(found.hours),
        "dollars": _limits(found.dollars),
        "dollars_per_million_samples": found.per_million if found.pace.basis == PUBLISHED else None,
        "marks": _marks(found, choice, mine),
        "keys": found.keys,
    }


def _limits(span: Span) -> list[float | None]:
    return [None if math.isinf(each) else round(each, 3) for each in (span.low, span.usual, span.high)]


def _measure(row: Row) -> str:
    precision = _precision(row.stack)
    return f"{row.offer.gpus}x {row.offer.gpu}" + (f" in {precision}" if precision else "")


def _precision(stack: Stack) -> str | None:
    return getattr(stack.job, "precision", None)


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
    keys = {**row.offer.keys, "job.maxSteps": row.steps}
    return f"{IN_STACK_FILE}{', '.join(f'{path}: {value}' for path, value in keys.items())}."


def _within(row: Alternative | None, what: str, nothing: str) -> str:
    return f"{what}: {_machines(row.offer)}, {_takes(row)}.{_keys(row)}" if row else nothing
