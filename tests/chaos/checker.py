"""Judges what an account has lived through: nothing ordered twice, nothing left billed, every dollar shown as it was charged.

It reads the account's own history and knows nothing of the provider: no line of code is shared with it.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import pairwise
from typing import Any

Line = Mapping[str, Any]
HOUR_S = 3600
CENT = Decimal("0.01")
"""Receipts are rounded to it."""
CHANGED = ("cancelled", "closed", "removed")
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

    @property
    def dollars(self) -> Decimal:
        """Charges of the hours begun; an open charge has begun its first hour."""
        lived_s = (self.closed or self.opened) - self.opened
        return self.per_hour * max(1, math.ceil(lived_s / HOUR_S))


@dataclass
class Verdict:
    """Every breach as a sentence."""

    orphans: list[str] = field(default_factory=list)
    """Resources that are billed or left unwanted, wanted ones that are missing, and touched ones of others."""
    duplicates: list[str] = field(default_factory=list)
    wrong_dollars: list[str] = field(default_factory=list)
    wrong_hours: list[str] = field(default_factory=list)
    """Node hours of a queue, where nothing is sold."""
    prompts: list[str] = field(default_factory=list)
    """Needs for a person: a question, a command that never ends, or one that does not go on by itself."""

    @property
    def breaches(self) -> list[str]:
        """All of them."""
        return self.orphans + self.duplicates + self.wrong_dollars + self.wrong_hours + self.prompts

    def add(self, other: "Verdict") -> None:
        """Take over another verdict's breaches, each once."""
        for mine, its in zip(vars(self).values(), vars(other).values(), strict=True):
            mine += [each for each in its if each not in mine]


def judge(history: Iterable[Line], owner: str, names: frozenset[str], orders: int | None = None) -> Verdict:
    """Judge a history against what was wanted.

    Args:
        owner: label and mark that everything of ours bears: what bears one of them is somebody else's.
        names: the machines that have to be billed at the end.
        orders: at most so many for each machine in all; None where a new one after a cancellation is right.
    """
    lines = list(history)
    verdict = Verdict()
    ours = [each for each in billed(lines) if _belongs(each.name, owner)]
    _count_orders(ours, orders, verdict)
    _count_open(ours, names, verdict)
    there = left_over(lines, owner)
    notes = Counter(there.values())
    for what, note in there.items():
        if not names:
            verdict.orphans.append(f"{what} is left")
        if notes[note] > 1:
            verdict.duplicates.append(f"{what} is there twice")
    # Nobody but us acts on the account, so that it was we who changed what is not ours.
    for line in _events(lines):
        name = str(line.get("domain") or line.get("notes") or "")
        if line["event"] in CHANGED and line["what"] != "vlan" and not _belongs(name, owner):
            verdict.orphans.append(f"somebody else's {line['what']} {line['id']} was {line['event']}")
    return verdict


def wrong_receipts(history: Iterable[Line], owner: str, said: Iterable[str]) -> list[str]:
    """Compare the receipts in what a command has just said with the charges of a history that ends there.

    A receipt is written when nothing is open any more, so that its total is final. The hour by which it may be off is no machine:
    each that was charged for has a line of its own.
    """
    ours, wrong = [each for each in billed(history) if _belongs(each.name, owner)], []
    for text in said:
        for total in RECEIPT_TOTAL.findall(text):
            wrong += _differing(ours, RECEIPT_ROW.findall(text), total)
    return wrong


def wrong_bill(history: Iterable[Line], owner: str, hours: tuple[float, float], shown: Mapping[str, Any]) -> list[str]:
    """Compare `fab receipt --json` with the charges of a history, and each machine's hours with those that it may have been billed."""
    ours = [each for each in billed(history) if _belongs(each.name, owner)]
    named = [row["host"] for row in shown["items"] if not row["is_part"]]
    wrong = _differing(ours, named, shown["total"])
    if shown["open"]:
        wrong.append(f"the receipt says that {shown['open']} are open")
    lived = {each.name: each.dollars / each.per_hour for each in ours}
    return wrong + [
        f"{name} was billed for {lived[name]} h" for name in lived if not hours[0] <= lived[name] <= hours[1]
    ]


def _differing(ours: list[Billed], named: Iterable[str], total: str) -> list[str]:
    """Say which machines a receipt does not name, and that its total is another."""
    missing = Counter(each.name.partition(".")[0] for each in ours) - Counter(named)
    wrong = [f"the receipt does not name {host}, for which the account charged" for host in missing.elements()]
    charged = sum((each.dollars for each in ours), Decimal(0))
    if abs(Decimal(total) - charged) > max((each.per_hour for each in ours), default=Decimal(0)) + CENT:
        wrong.append(f"the receipt says {total}, the account charged {charged}")
    return wrong


def billed(history: Iterable[Line]) -> list[Billed]:
    """Collect the billing items of a history."""
    found: dict[int, Billed] = {}
    for line in _events(history, "billing_item"):
        number = line["id"]
        if line["event"] == "made":
            name = f"{line['host']}.{line['domain']}" if line.get("domain") else str(line.get("notes") or "")
            found[number] = Billed(number, name, Decimal(line["per_hour"] or 0), line["at"], None)
        elif line["event"] == "closed":
            found[number] = replace(found[number], closed=line["at"])
    return list(found.values())


def left_over(history: Iterable[Line], owner: str) -> dict[str, str]:
    """Collect the unbilled things of an owner that were made and never removed, each with its notes."""
    there: dict[str, str] = {}
    for line in _events(history, "ssh_key", "security_group"):
        notes = f"{line['what']} {line.get('notes')}"
        what = f"{line['what']} {line['id']}"
        if line["event"] == "made" and _belongs(notes, owner):
            there[what] = notes
        elif line["event"] == "removed":
            there.pop(what, None)
    return there


def _events(history: Iterable[Line], *whats: str) -> Iterator[Line]:
    for line in history:
        if line["kind"] == "event" and (not whats or line["what"] in whats):
            yield line


def _belongs(name: str, owner: str) -> bool:
    return bool(re.search(rf"(^|[. ]){owner}(\.microcluster$|[ :]|$)", name))


def _count_orders(ours: list[Billed], orders: int | None, verdict: Verdict) -> None:
    for name in sorted({each.name for each in ours}):
        lives = sorted((each for each in ours if each.name == name), key=lambda each: each.opened)
        for earlier, later in pairwise(lives):
            if earlier.closed is None or earlier.closed > later.opened:
                verdict.duplicates.append(f"{name} was ordered as item {later.id} while item {earlier.id} was billed")
        if orders is not None and len(lives) > orders:
            verdict.duplicates.append(f"{name} was ordered {len(lives)} times, not {orders}")


def _count_open(ours: list[Billed], names: frozenset[str], verdict: Verdict) -> None:
    missing = set(names)
    for each in ours:
        if each.closed is None:
            missing.discard(each.name)
            if each.name not in names:
                verdict.orphans.append(f"{each.name} is billed as item {each.id}")
    verdict.orphans += [f"{name} is wanted and not billed" for name in sorted(missing)]
