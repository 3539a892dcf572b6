"""The results of the preflight: one line when all is as ordered, else a table of the differences."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from microcluster.core.plain_text import count, one_line

Check = Mapping[str, Any]
Row = tuple[str, str, str, str, str]

MARKS = {"ok": "ok", "note": "NOTE", "stop": "STOP"}
NODE = re.compile(r"(.*-)(\d+)")
HASH = re.compile(r"(sha256:[0-9a-f]{12})[0-9a-f]{52}")
"""An image's id; the first 12 digits are shown."""
WIDEST = 26
"""Widest column; a longer cell shifts the rest of its own row only."""
HEAD = ("", "check", "where", "found", "wanted")


def summary(checks: Sequence[Check], stack: str) -> str:
    """Return one line, and below it the rows that warn or stop."""
    wrong = [one for one in checks if one["verdict"] != "ok"]
    if not wrong:
        return f"preflight: {count(len(checks), 'check')}, all as ordered"
    good = len(checks) - len(wrong)
    head = f"preflight: {count(len(checks), 'check')}, {good} as ordered; all of them: fab status --preflight --stack {stack}"
    return "\n".join([head, *_lines(rows(wrong))])


def table(checks: Sequence[Check]) -> str:
    """Return every check."""
    if not checks:
        return "preflight: nothing was checked yet"
    return "\n".join([f"preflight: {count(len(checks), 'check')}", *_lines(rows(checks))])


def rows(checks: Sequence[Check]) -> list[Row]:
    """Return (mark, check, where, found, wanted); rows that differ only in their node become one."""
    places: dict[Row, list[str]] = {}
    for one in checks:
        check, where, found, wanted = (_shown(one[key]) for key in ("check", "where", "found", "wanted"))
        wanted = "the same" if wanted == found else wanted
        alike = (MARKS[one["verdict"]], check, "" if NODE.fullmatch(where) else where, found, wanted)
        places.setdefault(alike, []).append(where)
    return [(mark, check, _range(names), found, wanted) for (mark, check, _, found, wanted), names in places.items()]


def _shown(cell: object) -> str:
    return HASH.sub(r"\1", one_line(str(cell)))


def _range(names: Sequence[str]) -> str:
    """Return "gpu-0 .. gpu-7" for names that follow each other, else all of them."""
    first = NODE.fullmatch(names[0])
    if first and len(names) > 2 and list(names) == [f"{first[1]}{int(first[2]) + n}" for n in range(len(names))]:
        return f"{names[0]} .. {names[-1]}"
    return ", ".join(names)


def _lines(found: Sequence[Row]) -> list[str]:
    shown = [HEAD, *found]
    widths = [min(max(len(row[column]) for row in shown), WIDEST) for column in range(4)]
    return ["  " + "  ".join(cell.ljust(width) for cell, width in zip(row, [*widths, 0], strict=True)) for row in shown]
