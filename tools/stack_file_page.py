"""Write the tables of docs/stack-file.md from the model of the stack file: ``python -m tools.stack_file_page``."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel

from microcluster.accounts.registry import ACCOUNTS, account_of
from microcluster.config import rules
from microcluster.config import stack as config
from microcluster.config.model import Container
from microcluster.jobs.kinds import KINDS, kind_of
from microcluster.jobs.own_program import OwnProgram

PAGE = Path(__file__).parents[1] / "docs" / "stack-file.md"
BEGIN, END = "<!-- from here: python -m tools.stack_file_page -->", "<!-- to here -->"
STACKS = {"openseq2seq": "v100", "softlayer": "v100", "paperspace": "paperspace", "texar": "texar-p100"}
"""The stack, by its kind or its account, whose values show where a default comes from."""
HEAD = ["| key | type | default | range |", "|---|---|---|---|"]
TYPES = {
    "integer": "number",
    "number": "number",
    "string": "text",
    "array": "list of texts",
    "boolean": "yes or no",
    "object": "names and values",
}
RANGES = {
    "cluster.account": ", ".join(f"`{name}`" for name in ACCOUNTS),
    "cluster.adminCidrs": "IPv4 networks, together not more than a /8",
}
TIME_SCALE = (
    f"number | 1 | above 0 and up to {rules.LONGEST_TIME_SCALE}: the unit of all waits of the provider, for tests"
)


def tables() -> str:
    """Return the tables of all sections: `cluster` has one for each account, `job` one for each kind."""
    text = []
    for name in ACCOUNTS:
        account, own = account_of(name), _origins(STACKS[name]) if name in STACKS else {}
        ranges = {f"cluster.{key}": words for key, words in account.ranges.items()}
        text += [
            f"With `account: {name}`:",
            "",
            *HEAD,
            *_rows("cluster", account.section, own, ranges),
            *_settings(name),
            "",
        ]
    text += ["The container:", "", *HEAD, *_rows("container", Container, _origins("v100"))]
    own_programs: list[str] = []
    for kind in KINDS:
        origins = _origins(STACKS[kind]) if kind in STACKS else {}
        rows = [row for row in _rows("job", kind_of(kind), origins) if "`job.kind`" not in row]
        if not issubclass(kind_of(kind), OwnProgram):
            text += ["", f"With `kind: {kind}`:", "", *HEAD, *rows]
        elif not own_programs:
            own_programs = rows
            text += ["", f"With `kind: {kind}`, and every other kind for your own program:", "", *HEAD, *rows]
        elif other := [row for row in rows if row not in own_programs]:
            text += ["", f"With `kind: {kind}` these instead, or besides:", "", *HEAD, *other]
    return "\n".join(text)


def _settings(account: str) -> list[str]:
    """Return the rows of the keys beside the sections, `NAME:...`."""
    kind = account_of(account)
    rows = {kind.key_setting: f"path | {' | '.join(kind.key_setting_meaning)}", rules.TIME_SCALE: TIME_SCALE}
    return [f"| `{account}:{key}` | {row} |" for key, row in rows.items()]


def written() -> str:
    """Return the page with the tables as they should be."""
    before, _, rest = PAGE.read_text().partition(BEGIN)
    return f"{before}{BEGIN}\n\n{tables()}\n\n{END}{rest.partition(END)[2]}"


def _origins(stack: str) -> dict[str, tuple[Any, str]]:
    return {path: (value, source) for path, value, source in config.read_file(stack).origins}


def _rows(
    section: str,
    model: type[BaseModel],
    origins: Mapping[str, tuple[Any, str]],
    ranges: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[str]:
    schema = model.model_json_schema()
    for key, facts in schema["properties"].items():
        one = next((each for each in facts.get("anyOf", ()) if each.get("type") != "null"), facts)
        path = f"{section}.{key}"
        default = _default(*origins[path]) if path in origins else _plain(facts, key in schema.get("required", ()))
        meaning = (
            ranges.get(path) or RANGES.get(path) or facts.get("description") or one.get("description") or _range(one)
        )
        yield f"| `{path}` | {_type(one)} | {default} | {meaning} |"


def _plain(schema: Mapping[str, Any], required: bool) -> str:
    if required:
        return "required"
    return f"`{schema['default']}`" if schema.get("default") not in (None, "", []) else "not set"


def _type(schema: Mapping[str, Any]) -> str:
    return "word" if {"enum", "const"} & set(schema) else TYPES[schema["type"]]


def _default(value: Any, source: str) -> str:
    if source == "stack file":
        return "required"
    return f"`{value}`" if source == "default" else re.sub(r" (at \$|\(16 bits).*", "", source)


def _range(schema: Mapping[str, Any]) -> str:
    words = schema.get("enum") or ([schema["const"]] if "const" in schema else [])
    if words:
        return ", ".join(f"`{word}`" for word in words)
    return f"{schema['minimum']:,} to {schema['maximum']:,}" if "maximum" in schema else ""


if __name__ == "__main__":
    PAGE.write_text(written())
