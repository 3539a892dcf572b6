"""Write docs/systems.md from the registries, the stack files and the results of the e2e tests: ``python -m tools.systems_page``.

The e2e tests leave what each of their files did in ``artifacts/e2e.json``. Without a new result the one on the page stays.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.home import Home
from microcluster.accounts.registry import account_of
from microcluster.config import stack as config
from microcluster.config.stack import Stack
from microcluster.jobs.kinds import KINDS
from microcluster.lifecycle import emulated_account

ROOT = Path(__file__).parents[1]
PAGE, RESULTS, TESTS = ROOT / "docs" / "systems.md", ROOT / "artifacts" / "e2e.json", ROOT / "tests" / "e2e"
BEGIN, END = "<!-- from here: python -m tools.systems_page -->", "<!-- to here -->"
HEAD = [
    "| system | stack | what runs | tried by | its result | dollars an hour |",
    "|---|---|---|---|---|---|",
]
RESULT = re.compile(r"^\| [^|]+\| `(?P<stack>[^`]+)` \|[^|]+\|[^|]+\| (?P<result>[^|]+) \|", re.MULTILINE)


@dataclass(frozen=True)
class Row:
    """One stack of the table, with the e2e test that brings it up and how that ended."""

    stack: Stack
    emulated: bool
    test: str
    result: str

    def text(self) -> str:
        """Return the row."""
        account, name = account_of(self.stack.cluster.account), self.stack.name
        price = account.price_per_hour(self.stack.cluster)
        dollars = (
            "node hours"
            if price is None
            else "nobody pays"
            if self.emulated
            else f"{price * self.stack.cluster.nodes:.2f}"
        )
        runs = "a real training on an emulated account" if self.emulated else "[never run](never-run.md)"
        tried = f"`{self.test}`" if self.test else "nothing"
        return (
            f"| `{self.stack.job.kind}` on {account.title} | `{name}` | {runs} | {tried} | {self.result} | {dollars} |"
        )


def written(results: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the page with the table as it should be; ``results`` are new ones by the path of the test's file."""
    page = PAGE.read_text()
    before, _, rest = page.partition(BEGIN)
    known = {found["stack"]: found["result"] for found in RESULT.finditer(page)}
    rows = sorted((_row(name, known.get(name, "none"), results) for name in config.stacks()), key=_place)
    table = "\n".join([*HEAD, *(row.text() for row in rows)])
    return f"{before}{BEGIN}\n\n{table}\n\n{END}{rest.partition(END)[2]}"


def _row(name: str, before: str, results: Mapping[str, Mapping[str, Any]]) -> Row:
    test, emulated = _test_of(name), emulated_account.of_stack(name, Home.of()) is not None
    if not test:
        return Row(config.read_file(name), emulated, "", "none")
    new = results.get(test)
    return Row(config.read_file(name), emulated, test, _said(new) if new else before)


def _said(result: Mapping[str, Any]) -> str:
    counts = ", ".join(f"{count} {outcome}" for outcome, count in sorted(result["outcomes"].items()))
    return f"{counts} in {result['seconds'] / 60:.1f} min on {result['day']}"


def _test_of(stack: str) -> str:
    """Return the e2e test that brings a stack up, by the name that it gives."""
    wanted = re.compile(rf'(STACK = "|STACK=|stack="){re.escape(stack)}(?![\w-])')
    found = [path for path in sorted(TESTS.glob("test_*.py")) if wanted.search(path.read_text())]
    return found[0].relative_to(ROOT).as_posix() if found else ""


def _place(row: Row) -> tuple[int, bool, str]:
    return list(KINDS).index(row.stack.job.kind), row.emulated, row.stack.name


if __name__ == "__main__":
    PAGE.write_text(written(json.loads(RESULTS.read_text()) if RESULTS.exists() else {}))
