"""Records of a guard as facts and as sentences, with the next command."""

from typing import Any

from microcluster.core.catalog.billing_rules import money
from microcluster.guard.decision import price
from microcluster.guard.records import RECORD, Record
from microcluster.setup.errors import UNKNOWN


def facts(record: Record) -> dict[str, Any]:
    """Return what a guard found as plain values, with what follows from the charges."""
    known, rental = RECORD.dump_python(record, mode="json"), record.rental
    if rental:
        began = rental.began.isoformat() if rental.began else None
        money_now = {"spent": rental.spent, "per_hour": rental.per_hour, "currency": rental.currency}
        known["rental"] |= {"began": began, **money_now}
    return known


def sentence_of(stack: str, record: Record) -> str:
    """Say what a guard found, when it ends at the latest, and the next command."""
    rental, verdict, due = record.rental, record.verdict, record.verdict.due
    is_over = verdict.step == "over"
    said = f"guard of stack {stack}: {verdict.why}"
    if rental and rental.began:
        said += f"; {money(round(rental.spent, 2), rental.currency)} spent"
    if rental and rental.open and not is_over:
        said += f", {price(rental)}"
    if record.extension:
        said += f"; extended by {record.extension}"
    if due and not is_over:
        said += f"; {due.reason} ends it: from {due.begin:%d %b %H:%M} UTC, all cancelled by {due.last:%H:%M}"
    return f"{said}\nNext: {_next(stack, verdict.code, verdict.step)}."


def _next(stack: str, code: int, step: str) -> str:
    if step == "over":
        return f"`fab receipt --stack {stack}` shows what it cost"
    if code == UNKNOWN:
        return f"check the account's key and the network, then `fab guard --stack {stack}`"
    if code:
        return f"`make down STACK={stack} FETCH=1` ends the bill, with `DISCARD=1` without what cannot be fetched"
    return f"`fab extend --hours 6 --stack {stack}` moves the end, `fab guard --install --stack {stack}` looks every minute"
