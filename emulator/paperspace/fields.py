"""The input of an operation: which properties it takes, of which type; anything else is refused."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from emulator.paperspace.errors import invalid

STRING, NUMBER, INTEGER, BOOLEAN, STRINGS = "string", "number", "integer", "boolean", "array of strings"
WORDS = {"true": True, "false": False}


@dataclass(frozen=True)
class Field:
    """One property of an operation's input."""

    kind: str = STRING
    required: bool = False
    nullable: bool = False
    one_of: tuple[str, ...] = ()
    shortest: int = 0
    least: float | None = None
    most: float | None = None
    positive: bool = False

    def problem(self, value: Any) -> str | None:
        """Why a value does not fit; None when it does."""
        if value is None:
            return None if self.nullable else f"Expected {self.kind}, received null"
        if not _is_of(self.kind, value):
            return f"Expected {self.kind}, received {_kind_of(value)}"
        if self.one_of and value not in self.one_of:
            return f"Invalid enum value. Expected {' | '.join(map(repr, self.one_of))}, received {value!r}"
        return self._size_problem(value)

    def _size_problem(self, value: Any) -> str | None:
        if isinstance(value, str) and len(value) < self.shortest:
            return f"String must contain at least {self.shortest} character(s)"
        if self.positive and not value > 0:
            return "Number must be greater than 0"
        if self.least is not None and value < self.least:
            return f"Number must be greater than or equal to {self.least:g}"
        if self.most is not None and value > self.most:
            return f"Number must be less than or equal to {self.most:g}"
        return None


Fields = Mapping[str, Field]


def checked(
    fields: Fields, path: Mapping[str, str], query: Mapping[str, str], body: Mapping[str, Any]
) -> dict[str, Any]:
    """The input of a call: path, query and body together, or the refusal with everything that is wrong.

    The vendor's own examples repeat a path parameter in the body; with the same value that is fine.
    """
    given = {**{name: _read(fields.get(name), text) for name, text in query.items()}, **body}
    repeated = {name for name in path if given.get(name) == path[name]}
    given = {name: value for name, value in given.items() if name not in repeated}
    problems = [f"{name}: Required" for name, field in fields.items() if field.required and name not in given]
    unknown = sorted(given.keys() - fields.keys())
    problems += [f"Unrecognized key(s) in object: {', '.join(map(repr, unknown))}"] if unknown else []
    for name, field in fields.items():
        problem = field.problem(given[name]) if name in given else None
        problems += [f"{name}: {problem}"] if problem else []
    if problems:
        raise invalid(*problems)
    return given


def _read(field: Field | None, text: str) -> Any:
    """A value out of a query; a text that is not of the field's type stays a text, which is then refused."""
    if field is None or field.kind in (STRING, STRINGS):
        return text
    if field.kind == BOOLEAN:
        return WORDS.get(text, text)
    try:
        return int(text) if field.kind == INTEGER else float(text)
    except ValueError:
        return text


def _is_of(kind: str, value: Any) -> bool:
    if kind == STRINGS:
        return isinstance(value, list) and all(isinstance(each, str) for each in value)
    types = {STRING: str, BOOLEAN: bool, NUMBER: (int, float), INTEGER: int}[kind]
    return isinstance(value, types) and (kind == BOOLEAN or not isinstance(value, bool))


def _kind_of(value: Any) -> str:
    kinds = {str: STRING, bool: BOOLEAN, int: NUMBER, float: NUMBER, list: "array", dict: "object"}
    return kinds.get(type(value), type(value).__name__)
