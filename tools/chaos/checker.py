"""Judges what an account has lived through: nothing ordered twice, nothing left billed, every dollar shown as it was charged.

It reads the account's own history and knows nothing of the provider: no line of code is shared with it.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

HOUR_S = 3600
RECEIPT_TOTAL = re.compile(r"rented for ([0-9.]+) in all")
RECEIPT_ROW = re.compile(r"^ *(\S+) +(?!its )\S.*: \d{4}-\d\d-\d\d [\d:]{8} to ", re.MULTILINE)
"""One thing that was rented; what begins with "its" is billed beside the machine of the same name."""


@dataclass(frozen=True)
class Billed:
    """One billing item's life, in the account's own seconds."""

    id: int
    name: str
    per_hour: Decimal
    opened: float
    closed: float | None

    def charge(self, now: float) -> Decimal:
        """Dollars for the hours begun until now."""
        return self.per_hour * max(1, math.ceil(((self.closed or now) - self.opened) / HOUR_S))


@dataclass(frozen=True)
class Expected:
    """What has to be true at the end."""

    mark: str
    names: frozenset[str]
    """The machines that have to be billed."""
    orders: int | None = None
    """At most so many orders for each machine in all; None where a new one after a cancellation is right."""


@dataclass
class Verdict:
    """Every breach as a sentence."""

    orphans: list[str] = field(default_factory=list)
    """What is billed or left and not wanted, what is wanted and missing, what is another's and was touched."""
    duplicates: list[str] = field(default_factory=list)
    wrong_dollars: list[str] = field(default_factory=list)
    wrong_hours: list[str] = field(default_factory=list)
    """Node hours of a queue, where nothing is sold."""
    prompts: list[str] = field(default_factory=list)
    """Where a person was needed: a question, a command that never ends, or one that does not go on by itself."""

    @property
    def breaches(self) -> list[str]:
        """All of them."""
        return self.orphans + self.duplicates + self.wrong_dollars + self.wrong_hours + self.prompts

    def add(self, other: "Verdict") -> None:
        """Take over another verdict's breaches, each once."""
        for mine, its in zip(vars(self).values(), vars(other).values(), strict=True):
            mine += [each for each in its if each not in mine]


def judge(history: Iterable[Mapping[str, Any]], expected: Expected) -> Verdict:
    """Judge a history against what was wanted."""
    lines = list(history)
    ours = [each for each in billed(lines) if _belongs(each.name, expected.mark)]
    verdict = Verdict()
    _count_orders(ours, expected, verdict)
    _count_open(ours, expected, verdict)
    there = left_over(lines, expected.mark)
    if not expected.names:
        verdict.orphans += [f"{what} is left" for what in there]
    verdict.duplicates += [f"{what} is there twice" for what in there if list(there.values()).count(there[what]) > 1]
    verdict.orphans += [f"somebody else's {what} was {event}" for what, event in touched(lines, expected.mark)]
    return verdict


def wrong_receipts(history: Iterable[Mapping[str, Any]], mark: str, said: Iterable[str]) -> list[str]:
    """Compare the receipts in what a command has just said with the charges of a history that ends there.

    A receipt is written when nothing is open any more, so that its total is final. The hour by which it may be off is no machine:
    each that was charged for has a line of its own.
    """
    ours = [each for each in billed(history) if _belongs(each.name, mark)]
    named = Counter(each.name.partition(".")[0] for each in ours)
    receipts = [text for text in said if RECEIPT_TOTAL.search(text)]
    missing = [host for text in receipts for host in (named - Counter(RECEIPT_ROW.findall(text))).elements()]
    charged = sum((each.charge(each.opened) for each in ours), Decimal(0))
    unit = max((each.per_hour for each in ours), default=Decimal(0))
    totals = [total for text in receipts for total in RECEIPT_TOTAL.findall(text)]
    return [f"the receipt does not name {host}, for which the account charged" for host in missing] + [
        f"the receipt says {total}, the account charged {charged}"
        for total in totals
        if abs(Decimal(total) - charged) > unit
    ]


def billed(history: Iterable[Mapping[str, Any]]) -> list[Billed]:
    """Collect the billing items of a history."""
    found: dict[int, Billed] = {}
    for line in history:
        if line["kind"] != "event" or line["what"] != "billing_item":
            continue
        if line["event"] == "opened":
            name = f"{line['host']}.{line['domain']}" if line.get("domain") else str(line.get("notes") or "")
            found[line["id"]] = Billed(line["id"], name, Decimal(line["per_hour"] or 0), line["at"], None)
        elif line["event"] == "closed":
            found[line["id"]] = replace(found[line["id"]], closed=line["at"])
    return list(found.values())


def left_over(history: Iterable[Mapping[str, Any]], mark: str) -> dict[str, str]:
    """Collect the unbilled things under a mark that were made and never removed, each with its notes."""
    there: dict[str, str] = {}
    for line in history:
        if line["kind"] != "event" or line["what"] not in ("ssh_key", "security_group"):
            continue
        if line["event"] == "made":
            there[f"{line['what']} {line['id']}"] = f"{line['what']} {line.get('notes')}"
        elif line["event"] == "removed":
            there.pop(f"{line['what']} {line['id']}", None)
    return {what: notes for what, notes in there.items() if _belongs(notes, mark)}


def touched(history: Iterable[Mapping[str, Any]], mark: str) -> list[tuple[str, str]]:
    """Name what became of things that are not ours: nobody but us acts on the account, so that it was we."""
    changing = ("cancelled", "closed", "removed")
    return [
        (f"{line['what']} {line['id']}", line["event"])
        for line in history
        if line["kind"] == "event" and line["event"] in changing and line["what"] != "vlan" and not _is_ours(line, mark)
    ]


def _is_ours(line: Mapping[str, Any], mark: str) -> bool:
    return _belongs(str(line.get("domain") or line.get("notes") or ""), mark)


def _belongs(name: str, mark: str) -> bool:
    return bool(re.search(rf"-{mark}(\.microcluster$|[ :]|$)", name))


def _count_orders(ours: list[Billed], expected: Expected, verdict: Verdict) -> None:
    for name in sorted({each.name for each in ours}):
        lives = sorted((each for each in ours if each.name == name), key=lambda each: each.opened)
        for earlier, later in zip(lives, lives[1:], strict=False):
            if earlier.closed is None or earlier.closed > later.opened:
                verdict.duplicates.append(f"{name} was ordered as item {later.id} while item {earlier.id} was billed")
        if expected.orders is not None and len(lives) > expected.orders:
            verdict.duplicates.append(f"{name} was ordered {len(lives)} times, not {expected.orders}")


def _count_open(ours: list[Billed], expected: Expected, verdict: Verdict) -> None:
    still = [each for each in ours if each.closed is None]
    verdict.orphans += [f"{each.name} is billed as item {each.id}" for each in still if each.name not in expected.names]
    missing = expected.names - {each.name for each in still}
    verdict.orphans += [f"{name} is wanted and not billed" for name in sorted(missing)]
