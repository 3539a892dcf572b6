"""`fab receipt`: what was rented under the stack's mark, read from the account; needs neither state nor journal."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from core.home import Home, Owner
from core.plain_text import count, note, say
from microcluster.commands.command import FAILED, STACK, command, print_json
from microcluster.commands.holdings import Compared, differences, known_machines, with_state
from microcluster.commands.money import CENT, Statement, account_and_mark, keep
from microcluster.commands.screen import show_table
from microcluster.config import stack as config
from microcluster.guard.rental import Rental, rentals
from providers.rental.opened_account import OpenedAccount
from providers.rental.receipt import Charge
from providers.rental.sweep import of_other_stacks

COLUMNS = ("item", "host", "what", "from (UTC)", "to (UTC)", "price", "cost")


@command
def receipt(stack: str = STACK, as_json: bool = False, show_all: bool = False) -> int:
    """Print what was last rented under the stack's mark and what is still billed; exit code 1 while anything is."""
    account, mark = account_and_mark(stack)
    home = Home.of()
    owner = Owner(stack, mark)
    charges = account.charges(owner, known_machines(stack, home))
    now = datetime.now(UTC)
    keep(home, Statement(owner, account.is_emulated, now, tuple(charges)))
    *earlier, bill = rentals(charges, now) or [Rental(now)]
    before = Rental(now, tuple(row for rental in earlier for row in rental.rows))
    if show_all:
        before, bill = Rental(now), Rental(now, charges)
    everything = account.everything()
    found = [each for each in everything if each.owner == owner]
    compared = with_state(found, stack, home)
    extension = account.extension(owner) if bill.open else None
    to_come = account.to_come(owner, found, config.read_account(stack).time_scale)
    if as_json:
        print_json(
            {**facts(bill, before, compared, mark, account), "to_come": to_come, "extension": str(extension or "")}
        )
    else:
        _print(bill, before, compared, owner, account)
        say(f"extended by {extension} beside its stack file\n" if extension else "", end="")
        say("".join(f"to come: {each}\n" for each in to_come), end="")
        say("".join(f"{each}\n" for each in of_other_stacks(everything, owner)), end="")
        by_hand = [each for each in found if each.cancel_by_hand]
        say("".join(f"to be cancelled by hand: {each}: {each.cancel_by_hand}\n" for each in by_hand), end="")
    if bill.open or to_come:
        note(f"{'Still billed' if bill.open else 'Ordered and not billed yet'}. Cancel it: make down STACK={stack}")
    return FAILED if bill.open or to_come else 0


def facts(bill: Rental, before: Rental, compared: Compared, mark: str, account: OpenedAccount) -> dict[str, Any]:
    """Return the contract of `fab receipt --json`."""
    return {
        "account": account.identity().account_id,
        "mark": mark,
        "items": [{**vars(row), "is_open": row.is_open} for row in bill.rows],
        "total": bill.cost,
        "open": len(bill.open),
        "kept": [{"id": row.id, "host": row.host, "per_month": row.per_month} for row in bill.kept],
        "scheduled": [{"id": row.id, "host": row.host, "ends": row.ends} for row in bill.open if row.ends],
        "earlier": {"items": len(before.rows), "total": before.cost},
        "state": f"broken: {compared.broken}" if compared.broken else "agrees" if compared.agrees else "differs",
        "in_account_only": [{"kind": each.kind, "id": each.id, "name": each.name} for each in compared.account_only],
        "in_state_only": [{"kind": each.kind, "id": each.id, "name": each.name} for each in compared.state_only],
        "under_way": [each.name for each in compared.under_way],
    }


def _print(bill: Rental, before: Rental, compared: Compared, owner: Owner, account: OpenedAccount) -> None:
    identity = account.identity()
    rows = [
        (row.id, row.host, row.description, _when(row.opened), _until(row), price(row), _money(row.so_far))
        for row in bill.rows
    ]
    payer = "; emulated, nobody pays" if account.is_emulated else ""
    title = f"Receipt of account {identity.account_id} ({identity.username}), mark {owner.mark}{payer}"
    show_table(COLUMNS, rows, title, right=("item", "price", "cost"))
    say("\n".join([*_sums(bill, before, owner), *differences(compared, owner.stack)]))


def _sums(bill: Rental, before: Rental, owner: Owner) -> list[str]:
    lines = [f"total: {_money(bill.cost)} {bill.currency}"]
    if before.rows:
        lines.append(
            f"before that, under the same mark: {count(len(before.rows), 'item')} for {_money(before.cost)} {bill.currency}, "
            f"{_money(bill.cost + before.cost)} {bill.currency} in all (fab receipt --all --stack {owner.stack})"
        )
    lines += [f"ends later: item {row.id} ({row.host}) at {_when(row.ends)} UTC" for row in bill.open if row.ends]
    lines += [f"kept: {row.description} ({row.host}), {price(row)}" for row in bill.kept]
    return [*lines, f"open billing items with mark {owner.mark}: {len(bill.open)}"]


def price(row: Charge) -> str:
    """Return an item's price by the hour or the month."""
    return f"{row.per_hour.normalize():f} an hour" if row.hourly else f"{row.per_month.normalize():f} a month"


def _until(row: Charge) -> str:
    return "still billed" if row.is_open else _when(row.closed)


def _money(amount: Decimal) -> str:
    return str(amount.quantize(CENT))


def _when(moment: datetime | None) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S") if moment else ""
