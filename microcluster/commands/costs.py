"""`fab costs`: what the stacks of this key folder cost, now and before, by rental and by day; from their accounts and kept receipts."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from microcluster.accounts.shared.key_file import CredentialsError
from microcluster.accounts.shared.rental import Rental
from microcluster.command_line.command import AsJson, command
from microcluster.command_line.parts import SENTENCES, print_json, sentence
from microcluster.core.catalog.billing_rules import DOLLARS, plain
from microcluster.core.home import PUBLIC_KEY, Home, stack_of
from microcluster.core.plain_text import count, note, say
from microcluster.display.console import show_table
from microcluster.planning.run_cost import CENT
from microcluster.rental.statement import Statement, keep, kept, read_statement
from microcluster.run.report import reports_in
from microcluster.setup.environment import ARTIFACTS
from microcluster.setup.errors import UNKNOWN

COLUMNS = ("stack", "cost", "from (UTC)", "to (UTC)", "hours", "an hour now", "payer", "runs")
NUMBERS = ("cost", "hours", "an hour now")
DAY = timedelta(days=1)
NO_KEY = "there is no key of the account."


@dataclass(frozen=True)
class Paid(Rental):
    """A rental of a stack, and the runs of which a report lies here."""

    stack: str = ""
    account: str = ""
    emulated: bool = False
    runs: tuple[str, ...] = ()

    @property
    def opened(self) -> datetime:
        return self.rows[0].opened

    @property
    def closed(self) -> datetime | None:
        """End of its last charge; None while anything is open."""
        ends = [row.closed for row in self.rows]
        return None if None in ends else max(ends)

    @property
    def hours(self) -> float:
        span = (self.closed or self.read_at) - self.opened
        return max(span / timedelta(hours=1), 0)  # An emulated account's clock may be ahead.

    def by_day(self) -> Iterator[tuple[date, Decimal]]:
        """Share each charge out over its days (UTC), by their time."""
        for row in self.rows:
            begin = row.opened.astimezone(UTC)
            end = max((row.closed or self.read_at).astimezone(UTC), begin + timedelta(seconds=1))
            whole = end - begin
            while begin < end:
                until = min(end, datetime.combine(begin.date() + DAY, time(), UTC))
                yield begin.date(), row.so_far * Decimal((until - begin) / whole)
                begin = until


@command
def costs(as_json: AsJson = False) -> int:
    """Show what all stacks of this key folder cost, by rental and by day, also as a page; exit code 3 if an account is silent."""
    home = Home.of()
    said, unread = statements(home)
    found = [rental for one in said for rental in rentals_of(one, ARTIFACTS)]
    found.sort(key=lambda rental: rental.opened)
    told = sums(found)
    page = home.root / "costs.html"
    _draw(page, found, told)
    if as_json:
        print_json({"rentals": [_facts(one) for one in found], "days": by_day(found), "sums": told, "unread": unread})
    else:
        show_table(COLUMNS, [_cells(one) for one in found], right=NUMBERS)
        say("\n".join([*told, f"page: {page}"]))
    for why, stacks in unread.items():
        note(f"Of {', '.join(stacks)} only what was kept here counts: {why}")
    return UNKNOWN if any(why != NO_KEY for why in unread) else 0


def statements(home: Home) -> tuple[list[Statement], dict[str, list[str]]]:
    """Return what each account says, or what was kept of it, and why the accounts of which stacks say nothing."""
    found = {(one.owner, one.account): one for one in kept(home)}
    unread: dict[str, list[str]] = {}
    for stack in sorted({stack_of(path.parent) for path in home.keys.glob(f"*/{PUBLIC_KEY}")}):
        try:
            account, said = read_statement(stack, home)
            account.check_sees_all(f"reading what stack {stack} has cost")
            if said.charges or (said.owner, said.account) in found:
                found[said.owner, said.account] = keep(home, said)
        except CredentialsError:
            unread.setdefault(NO_KEY, []).append(stack)
        except SENTENCES as error:
            unread.setdefault(sentence(str(error)), []).append(stack)
    known = {(owner, row.id) for (owner, account), one in found.items() if account for row in one.charges}
    for (owner, account), one in found.items():
        if not account:  # What an account lists that is known counts there.
            rest = tuple(row for row in one.charges if (owner, row.id) not in known)
            found[owner, account] = replace(one, charges=rest)
    return [found[key] for key in sorted(found, key=str)], unread


def rentals_of(said: Statement, artifacts: Path) -> list[Paid]:
    """Return the rentals of a statement, each with the runs whose reports lie here."""
    reports = reports_in(artifacts, said.owner.stack).values()
    opened = {one["run"]: {row.get("opened") for row in one.get("bill") or ()} for one in reports}
    found = []
    for rental in said.rentals:
        began = {row.opened.timestamp() for row in rental.rows}
        runs = tuple(sorted(run for run, moments in opened.items() if moments & began))
        of = {
            "stack": stack_of(Home.of().keys / said.owner.stack),
            "emulated": said.emulated,
            "account": said.account,
            "runs": runs,
        }
        found.append(Paid(rental.read_at, rental.rows, id=rental.id, **of))
    return found


def by_day(found: Sequence[Paid]) -> dict[str, dict[str, Decimal]]:
    """Return dollars by stack and day, without node hours; every day from the first to the last."""
    totals: dict[str, dict[date, Decimal]] = {}
    for rental in found:
        if rental.currency == DOLLARS:
            of_stack = totals.setdefault(_label(rental), defaultdict(Decimal))
            for day, cost in rental.by_day():
                of_stack[day] += cost
    days = sorted({day for of_stack in totals.values() for day in of_stack})
    every = [days[0] + number * DAY for number in range((days[-1] - days[0]).days + 1)] if days else []
    return {stack: {str(day): of_stack[day] for day in every} for stack, of_stack in totals.items()}


def sums(found: Sequence[Paid]) -> list[str]:
    """Say what all of it has cost, and what is open now; what nobody pays stands apart."""
    lines = []
    for emulated, currency in sorted({(rental.emulated, rental.currency) for rental in found}):
        of = [rental for rental in found if (rental.emulated, rental.currency) == (emulated, currency)]
        total = sum((one.cost for one in of), Decimal(0))
        now = sum((one.billed_per_hour for one in of), Decimal(0))
        still = ", ".join(sorted({one.stack for one in of if one.closed is None}))
        open_now = f"open now: {still}, {plain(now)} {currency} an hour" if still else "nothing is open"
        payer = "; emulated, nobody pays" if emulated else ""
        lines.append(f"{total.quantize(CENT)} {currency} in {count(len(of), 'rental')}; {open_now}{payer}")
    return lines or ["Nothing was ever rented with the keys of this folder."]


def _draw(page: Path, found: Sequence[Paid], told: Sequence[str]) -> None:
    from microcluster.display.report_page import bars, figures  # noqa: PLC0415 - drawing takes time at every start

    days = by_day(found)
    heights = {stack: [float(cost) for cost in of.values()] for stack, of in days.items()}
    charts = [("Dollars by day", bars("dollars", list(next(iter(days.values()))), heights))] if days else []
    tables = [("Rentals", [COLUMNS, *map(_cells, found)])] if found else []
    figures(page, "What was rented", "Read from the accounts", told=told, charts=charts, tables=tables)


def _label(rental: Paid) -> str:
    return f"{rental.stack} (emulated)" if rental.emulated else rental.stack


def _cells(one: Paid) -> tuple[str, ...]:
    until = f"{one.closed.astimezone(UTC):%Y-%m-%d %H:%M}" if one.closed else "still billed"
    per_hour = plain(one.billed_per_hour) if one.closed is None else ""
    begun = f"{one.opened.astimezone(UTC):%Y-%m-%d %H:%M}"
    cost = f"{one.cost.quantize(CENT)} {one.currency}"
    payer = ", ".join(filter(None, ["emulated" * one.emulated, "account unknown" * (not one.account)]))
    return one.stack, cost, begun, until, f"{one.hours:.1f}", per_hour, payer, ", ".join(one.runs)


def _facts(one: Paid) -> dict[str, Any]:
    return {
        "stack": one.stack,
        "account": one.account or None,
        "rental": one.id or None,
        "runs": one.runs,
        "emulated": one.emulated,
        "read": one.read_at,
        "from": one.opened,
        "to": one.closed,
        "hours": round(one.hours, 3),
        "cost": one.cost,
        "currency": one.currency,
        "per_hour_now": one.billed_per_hour,
    }
