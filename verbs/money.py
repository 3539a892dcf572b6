"""What a stack costs and has cost, read from the account by the stack's mark; a receipt works without any state of Pulumi."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import invoke
from rich.console import Console
from rich.table import Table

import config
from launchers.payload import Payload, PayloadError
from providers.softlayer.account import Account, AccountError, Receipt, open_account, read_charges
from providers.softlayer.account import receipt as add_up
from verbs.frame import FAILED, STACK, VerbError, print_json, sentence, tell, verb
from verbs.living import find_payload

CENT = Decimal("0.01")


@dataclass(frozen=True)
class Cost:
    """What the open billing items of a stack cost; None where the account cannot be read."""

    per_hour: Decimal | None
    so_far: Decimal | None
    currency: str = "USD"

    def as_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "per_hour": None if self.per_hour is None else str(self.per_hour),
            "so_far": None if self.so_far is None else str(self.so_far.quantize(CENT)),
            "currency": self.currency,
        }

    def __str__(self) -> str:
        """Say it in a few words."""
        if self.per_hour is None or self.so_far is None:
            return "cost unknown"
        return f"${self.so_far.quantize(CENT)} so far, ${self.per_hour.normalize():f}/hour"


def cost_of(payload: Payload, account: Account | None = None) -> Cost:
    """Return what is being billed for a stack that is up, as the account says in which it was ordered."""
    try:
        account = account or open_account(payload.account_config_file)
        charges = [charge for charge in read_charges(account, payload.mark) if charge.is_open]
    except AccountError as error:
        tell(sentence(str(error)))
        return Cost(None, None)
    return Cost(sum((c.per_hour for c in charges), Decimal(0)), sum((c.so_far for c in charges), Decimal(0)))


def account_and_mark(stack: str) -> tuple[Account, str]:
    """Open the account in which the stack was ordered; the stack file says which when nothing is up, or known of it."""
    try:
        payload = find_payload(stack)
    except (VerbError, PayloadError):  # A receipt is asked for most when the state is lost.
        payload = None
    if payload:
        return open_account(payload.account_config_file), payload.mark
    return open_account(config.read_file(stack).account_config_file), config.owner(stack).mark


@verb
def receipt(context: invoke.Context, stack: str = STACK, json: bool = False) -> int:
    """Print what was rented under the stack's mark, and what is still billed; exit code 1 unless nothing is."""
    account, mark = account_and_mark(stack)
    bill = add_up(read_charges(account, mark))
    if json:
        print_json(_facts(bill, mark, account))
    else:
        _print_table(bill, mark, account)
    if bill.open_count:
        tell(f"Still billed. Cancel it: make down STACK={stack}")
    return FAILED if bill.open_count else 0


def _facts(bill: Receipt, mark: str, account: Account) -> dict[str, Any]:
    rows = [{**vars(row), "is_open": row.is_open} for row in bill.rows]
    identity = account.identity()
    return {"account": identity.account_id, "mark": mark, "items": rows, "total": bill.total, "open": bill.open_count}


def _print_table(bill: Receipt, mark: str, account: Account) -> None:
    identity = account.identity()
    console = Console(file=sys.stdout, width=None if sys.stdout.isatty() else 140)
    table = Table(
        title=f"Receipt of account {identity.account_id} ({identity.username}), mark {mark}", title_justify="left"
    )
    for name, side in (("item", "right"), ("host", "left"), ("what", "left"), ("from (UTC)", "left"), ("to (UTC)", "left"), ("per hour", "right"), ("cost", "right")):  # fmt: skip
        table.add_column(name, justify=side)  # type: ignore[arg-type]
    for row in bill.rows:
        until = "still billed" if row.is_open else _when(row.closed)
        table.add_row(
            row.id,
            row.host,
            row.description,
            _when(row.opened),
            until,
            f"{row.per_hour:f}",
            f"{row.so_far.quantize(CENT)}",
        )
    console.print(table)
    print(f"total: {bill.total.quantize(CENT)} USD")
    print(f"open billing items with mark {mark}: {bill.open_count}")


def _when(moment: datetime | None) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S") if moment else ""
