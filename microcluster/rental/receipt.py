"""Receipt of a stack: what was rented under its mark, by the account; needs neither state nor journal."""

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from microcluster.accounts.shared.account import Extension, Resource
from microcluster.accounts.shared.errors import AccountError
from microcluster.accounts.shared.opened_account import OpenedAccount
from microcluster.accounts.shared.receipt import Charge, when
from microcluster.accounts.shared.rental import Rental
from microcluster.accounts.shared.sweep import of_other_stacks
from microcluster.command_line.parts import print_json, sentence
from microcluster.core.home import Home
from microcluster.core.plain_text import count, note, say
from microcluster.display.console import show_table
from microcluster.lifecycle.pulumi_state import Held
from microcluster.planning.run_cost import CENT
from microcluster.rental.account import place_of
from microcluster.rental.holdings import Compared, differences, with_state
from microcluster.rental.statement import keep, read_statement
from microcluster.setup.errors import FAILED, UNKNOWN

COLUMNS = ("item", "host", "what", "from (UTC)", "to (UTC)", "price", "cost")


def print_receipt(stack: str, *, as_json: bool = False, show_all: bool = False) -> int:
    """Print what was last rented under the stack's mark and what is still billed; return 1 while anything is.

    Return 3 where nothing is, and the key's user is not shown everything.
    """
    home, unseen = Home.of(), ""
    account, said = read_statement(stack, home)
    try:
        account.check_sees_all(f"reading the receipt of stack {stack}")
        keep(home, said)
    except AccountError as hidden:  # What this user is not shown has not ended.
        unseen = str(hidden)
    owner, now = said.owner, said.read
    *earlier, bill = said.rentals or [Rental(now)]
    before = Rental(now, tuple(row for rental in earlier for row in rental.rows))
    if show_all:
        before, bill = Rental(now), Rental(now, said.charges)
    everything = account.everything()
    found = [each for each in everything if each.owner == owner]
    compared = with_state(found, stack, home)
    extension = account.extension(owner) if bill.open else Extension()
    to_come = account.to_come(owner, found, place_of(stack).settings.time_scale)
    if as_json:
        known = facts(bill, before, compared, owner.mark, account)
        print_json({**known, "to_come": to_come, "unseen": unseen, "extension": str(extension)})
    else:
        lines = [
            *_sums(bill, before, owner.mark, stack, shown=" that this user is shown" if unseen else ""),
            *differences(compared, stack),
        ]
        lines += [f"extended by {extension} beside its stack file"] if extension else []
        lines += [f"to come: {each}" for each in to_come]
        lines += of_other_stacks(everything, owner)
        lines += [f"to be cancelled by hand: {each}: {each.cancel_by_hand}" for each in found if each.cancel_by_hand]
        _show(bill, owner.mark, account)
        say("\n".join(lines))
    if bill.open or to_come:
        note(f"{'Still billed' if bill.open else 'Ordered and not billed yet'}. Cancel it: make down STACK={stack}")
    if unseen:
        note(sentence(unseen))
    return FAILED if bill.open or to_come else UNKNOWN if unseen else 0


def facts(bill: Rental, before: Rental, compared: Compared, mark: str, account: OpenedAccount) -> dict[str, Any]:
    """Return the contract of `fab receipt --json`."""
    state = "agrees" if compared.agrees else "differs"
    return {
        "account": account.identity().account_id,
        "rental": bill.id,
        "mark": mark,
        "items": [{**vars(row), "is_open": row.is_open} for row in bill.rows],
        "total": bill.cost,
        "open": len(bill.open),
        "kept": [{"id": row.id, "host": row.host, "per_month": row.per_month} for row in bill.kept],
        "scheduled": [{"id": row.id, "host": row.host, "ends": row.ends} for row in bill.open if row.ends],
        "earlier": {"items": len(before.rows), "total": before.cost},
        "state": f"broken: {compared.broken}" if compared.broken else state,
        "in_account_only": _named(compared.account_only),
        "in_state_only": _named(compared.state_only),
        "under_way": [each.name for each in compared.under_way],
    }


def _named(things: Iterable[Resource | Held]) -> list[dict[str, str | None]]:
    return [{"kind": each.kind, "id": each.id, "name": each.name} for each in things]


def _show(bill: Rental, mark: str, account: OpenedAccount) -> None:
    identity = account.identity()
    rows = []
    for row in bill.rows:
        until = "still billed" if row.is_open else when(row.closed)
        rows.append((row.id, row.host, row.description, when(row.opened), until, price(row), _money(row.so_far)))
    payer = "; emulated, nobody pays" if account.is_emulated else ""
    name = f", rental {bill.id}" if bill.id else ""
    title = f"Receipt of account {identity.account_id} ({identity.username}), mark {mark}{name}{payer}"
    show_table(COLUMNS, rows, title, right=("item", "price", "cost"))


def _sums(bill: Rental, before: Rental, mark: str, stack: str, *, shown: str) -> list[str]:
    lines = [f"total: {_money(bill.cost)} {bill.currency}"]
    if before.rows:
        lines.append(
            f"before that, under the same mark: {count(len(before.rows), 'item')} for {_money(before.cost)} {bill.currency}, "
            f"{_money(bill.cost + before.cost)} {bill.currency} in all (fab receipt --all --stack {stack})"
        )
    lines += [f"ends later: item {row.id} ({row.host}) at {when(row.ends)} UTC" for row in bill.open if row.ends]
    lines += [f"kept: {row.description} ({row.host}), {price(row)}" for row in bill.kept]
    return [*lines, f"open billing items with mark {mark}{shown}: {len(bill.open)}"]


def price(row: Charge) -> str:
    """Return an item's price by the hour or the month."""
    return f"{row.per_hour.normalize():f} an hour" if row.hourly else f"{row.per_month.normalize():f} a month"


def _money(amount: Decimal) -> str:
    return str(amount.quantize(CENT))
