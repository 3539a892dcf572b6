"""The vendor's description of the Paperspace API (paperspace_contract.txt), and whether an answer keeps to it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any
from uuid import UUID

FILE = Path(__file__).with_name("paperspace_contract.txt")
OPERATION = re.compile(r"(?P<method>[A-Z]+) (?P<path>/\S*) (?P<name>\S+) -> (?P<answer>\S+)(?P<keyless> KEYLESS)?")
# Where clients of the live service have met something else than the document says: see docs/emulator.md.
BYTES = ("int64", "integer")
EXTRA_OF_REFUSAL = "issues"


@dataclass(frozen=True)
class Described:
    """One operation as it is described."""

    name: str
    method: str
    path: str
    answer: str
    fields: Mapping[str, str]

    @property
    def pattern(self) -> re.Pattern[str]:
        return re.compile(re.sub(r"\{\w+\}", "[^/]+", self.path))


@cache
def contract() -> tuple[dict[str, dict[str, str]], tuple[Described, ...]]:
    """The objects with their properties, and the operations."""
    objects: dict[str, dict[str, str]] = {}
    operations = []
    heads = re.split(r"\n(?=[A-Za-z])", re.sub(r"^#.*\n", "", FILE.read_text(), flags=re.MULTILINE).strip())
    for block in heads:
        head, _, rest = block.partition("\n")
        properties = dict(each.split(": ") for each in re.split(r",\s+", re.sub(r"\|\s+", "|", rest.strip())) if each)
        if match := OPERATION.fullmatch(head):
            operations.append(Described(match["name"], match["method"], match["path"], match["answer"], properties))
        else:
            objects[head] = properties
    return objects, tuple(operations)


def described(method: str, path: str) -> Described:
    """The operation of a method and a path."""
    return next(each for each in contract()[1] if each.method == method and each.pattern.fullmatch(path))


def problems_of_answer(method: str, path: str, status: int, body: Any) -> list[str]:
    """Deviations of an answer from its description."""
    if status == 200:
        return _problems(described(method, path).answer, body, f"{method} {path}")
    known = {name: value for name, value in body.items() if name != EXTRA_OF_REFUSAL}
    return _properties(
        {"message": "string", "code": "string", "details~": "object"}, known, f"refusal of {method} {path}"
    )


def _properties(wanted: Mapping[str, str], given: Mapping[str, Any], where: str) -> list[str]:
    types = {name.removesuffix("~"): kind for name, kind in wanted.items()}
    problems = [f"{where}: {name} is not described" for name in given if name not in types]
    problems += [f"{where}: {name} is missing" for name in wanted if not name.endswith("~") and name not in given]
    for name, kind in types.items():
        problems += _problems(kind, given[name], f"{where}.{name}") if name in given else []
    return problems


def _problems(kind: str, value: Any, where: str) -> list[str]:
    if kind.endswith("?"):
        return [] if value is None else _problems(kind[:-1], value, where)
    if kind.startswith("["):
        if not isinstance(value, list):
            return [f"{where} is no list"]
        return [
            problem
            for number, each in enumerate(value)
            for problem in _problems(kind[1:-1], each, f"{where}[{number}]")
        ]
    if kind in contract()[0]:
        return _properties(contract()[0][kind], value, where) if isinstance(value, dict) else [f"{where} is no {kind}"]
    return [] if _fits(kind, value) else [f"{where} is {value!r}, not {kind}"]


def _fits(kind: str, value: Any) -> bool:
    if kind in BYTES:
        return isinstance(value, int) or (isinstance(value, str) and value.isdigit())
    if kind in ("number", "size"):
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if kind in ("moment", "uuid"):
        return isinstance(value, str) and _reads({"moment": datetime.fromisoformat, "uuid": UUID}[kind], value)
    plain = {"string": str, "boolean": bool, "object": dict}
    if kind in plain:
        return isinstance(value, plain[kind])
    if kind == "text":
        return isinstance(value, str) and bool(value)
    return isinstance(value, str) and value.replace(" ", "_") in kind.split("|")


def _reads(read: Any, text: str) -> bool:
    try:
        read(text)
    except ValueError:
        return False
    return True
