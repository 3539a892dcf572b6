"""Write what pages for people take from the code: ``python -m docs.tools.pages``.

It writes the tables of docs/stack-file.md and docs/systems.md, which has the results of the e2e tests too: they leave what each of
their files did in ``artifacts/e2e.json``. Without a new result the one on the page stays.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from microcluster.accounts.registry import ACCOUNTS, account_of
from microcluster.config import rules_and_defaults
from microcluster.config import stack as config
from microcluster.config.sections import ContainerSection, GuardSection
from microcluster.config.stack import Stack
from microcluster.core.home import Home
from microcluster.jobs.kinds import KINDS, kind_of
from microcluster.jobs.own_program import OwnProgram
from microcluster.lifecycle import emulated_account

ROOT = Path(__file__).parents[2]
STACK_FILE = ROOT / "docs" / "stack-file.md"
SYSTEMS, RESULTS, TESTS = ROOT / "docs" / "systems.md", ROOT / "artifacts" / "e2e.json", ROOT / "tests" / "e2e"
BEGIN, END = "<!-- from here: python -m docs.tools.pages -->", "<!-- to here -->"
STACKS = {"openseq2seq": "v100", "softlayer": "v100", "paperspace": "paperspace", "texar": "texar-p100"}
"""The stack, by its kind or its account, whose values show where a default comes from."""
KEYS_HEAD = ["| key | type | default | range |", "|---|---|---|---|"]
TYPES = {
    "integer": "number",
    "number": "number",
    "string": "text",
    "array": "texts",
    "boolean": "yes/no",
    "object": "mapping",
}
TIME_SCALE = f"`NAME:timeScale`, above 0, up to {rules_and_defaults.LONGEST_TIME_SCALE}, is the unit of the provider's waits, for tests."
SYSTEMS_HEAD = [
    "| system | stack | tried by | its result | dollars an hour |",
    "|---|---|---|---|---|",
]
RESULT = re.compile(r"^\| [^|]+\| `(?P<stack>[^`]+)` \|[^|]+\| (?P<result>[^|]+) \|", re.MULTILINE)


def stack_file() -> str:
    """Return the page of the stack file, with tables from its model."""
    return with_table(STACK_FILE, _keys())


def systems(results: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the page of what was run where; ``results`` are new ones by the path of the test's file."""
    known = {found["stack"]: found["result"] for found in RESULT.finditer(SYSTEMS.read_text())}
    stacks = sorted(map(config.read_file, config.stacks()), key=_place)
    rows = [_system(stack, known.get(stack.name, "none"), results) for stack in stacks]
    return with_table(SYSTEMS, "\n".join([*SYSTEMS_HEAD, *rows]))


def with_table(page: Path, table: str, begin: str = BEGIN) -> str:
    """Return a page with another table behind the line that says what writes it."""
    before, _, rest = page.read_text().partition(begin)
    return f"{before}{begin}\n\n{table}\n\n{END}{rest.partition(END)[2]}"


def _keys() -> str:
    """Return the tables of all sections: `cluster` has one for each account, `job` one for each kind."""
    text = []
    for name in ACCOUNTS:
        rows = _rows("cluster", account_of(name).section, _origins(STACKS.get(name)))
        others = [row for row in rows if "`cluster.account`" not in row]
        text += _table(f"With `cluster.account: {name}`:", [*others, _setting(name)])
    text += ["", f"Without `cluster.account` it is `{next(iter(ACCOUNTS))}`. {TIME_SCALE}"]
    text += _table("The container:", _rows("container", ContainerSection, _origins("v100")))
    text += _table("The guard, a section that may be left out:", _rows("guard", GuardSection, {}))
    of_kinds = {kind: list(_rows("job", kind_of(kind), _origins(STACKS.get(kind)))) for kind in KINDS}
    shared = [row for row in of_kinds["horovod"] if all(row in rows for rows in of_kinds.values())]
    text += _table("With every `kind`:", shared)
    own_programs: list[str] = []
    for kind, all_rows in of_kinds.items():
        title = f"With `kind: {kind}`"
        rows = [row for row in all_rows if "`job.kind`" not in row and row not in shared]
        other = [row for row in rows if row not in own_programs]
        if not issubclass(kind_of(kind), OwnProgram):
            text += _table(f"{title}:", rows)
        elif not own_programs:
            own_programs = rows
            text += _table(f"{title}, and every other kind for your own program:", rows)
        elif other:
            text += _table(f"{title} these instead, or besides:", other)
    return "\n".join(text).strip()


def _table(title: str, rows: Iterable[str]) -> list[str]:
    return ["", title, "", *KEYS_HEAD, *rows]


def _setting(account: str) -> str:
    """Return the row of the key beside the sections, `NAME:...`."""
    key = account_of(account).key
    return f"| `{account}:{key.name}` | path | {key.default} | {key.meaning} |"


def _origins(stack: str | None) -> dict[str, tuple[Any, str]]:
    return {path: (value, source) for path, value, source in config.read_file(stack).origins} if stack else {}


def _rows(section: str, model: type[BaseModel], origins: Mapping[str, tuple[Any, str]]) -> Iterator[str]:
    schema = model.model_json_schema()
    for key, facts in schema["properties"].items():
        one = next((each for each in facts.get("anyOf", ()) if each.get("type") != "null"), facts)
        path = f"{section}.{key}"
        default = _default(*origins[path]) if path in origins else _plain(facts, key in schema.get("required", ()))
        meaning = facts.get("description") or one.get("description") or _range(one)
        yield f"| `{path}` | {_type(one)} | {default} | {meaning} |"


def _plain(schema: Mapping[str, Any], required: bool) -> str:
    if required:
        return "required"
    return f"`{schema['default']}`" if schema.get("default") not in (None, "", []) else ""


def _type(schema: Mapping[str, Any]) -> str:
    return "word" if {"enum", "const"} & set(schema) else TYPES[schema["type"]]


def _default(value: Any, source: str) -> str:
    if source == "stack file":
        return "required"
    if value == "()":
        return ""
    return (
        f"`{value}`"
        if source == "default"
        else re.sub(r" (at \$|\(16 bits).*|^not set(: )?|^follows (?=from)", "", source)
    )


def _range(schema: Mapping[str, Any]) -> str:
    words = schema.get("enum") or ([schema["const"]] if "const" in schema else [])
    if words:
        return ", ".join(f"`{word}`" for word in words)
    return f"{schema['minimum']:,} to {schema['maximum']:,}" if "maximum" in schema else ""


def _system(stack: Stack, before: str, results: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the row of a stack, with the e2e test that brings it up and how that ended."""
    is_emulated, price = _is_emulated(stack), stack.cluster.rent_per_hour
    result, tried = "none" if is_emulated else "[never run](never-run.md)", "nothing"
    if test := _test_of(stack.name):
        tried = f"`{test}`"
        result = _said(results[test]) if test in results else before
    dollars = "node hours"
    if price is not None:
        dollars = "0" if is_emulated else f"{price:.2f}"
    account = account_of(stack.cluster.account).title
    return f"| `{stack.job.kind}` on {account} | `{stack.name}` | {tried} | {result} | {dollars} |"


def _is_emulated(stack: Stack) -> bool:
    return emulated_account.of_account(stack.account, Home.of()) is not None


def _said(result: Mapping[str, Any]) -> str:
    counts = ", ".join(f"{count} {outcome}" for outcome, count in sorted(result["outcomes"].items()))
    return f"{counts}, {result['seconds'] / 60:.1f} min, {result['day']}"


def _test_of(stack: str) -> str:
    """Return the e2e test that brings a stack up, by the name that it gives."""
    wanted = re.compile(rf'(STACK = "|STACK=|stack="){re.escape(stack)}(?![\w-])')
    found = [path for path in sorted(TESTS.glob("test_*.py")) if wanted.search(path.read_text())]
    return found[0].relative_to(ROOT).as_posix() if found else ""


def _place(stack: Stack) -> tuple[int, bool, str]:
    return KINDS.index(stack.job.kind), _is_emulated(stack), stack.name


def main() -> None:
    """Write all pages."""
    new = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for page, text in ((STACK_FILE, stack_file()), (SYSTEMS, systems(new))):
        page.write_text(text)


if __name__ == "__main__":
    main()
