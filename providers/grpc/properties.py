"""A resource's properties: as wire values, as typed inputs, and what is wrong or changed in them."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Self

import pydantic
from google.protobuf import json_format, struct_pb2
from pydantic.alias_generators import to_camel

UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
"""What stands for a value that a preview cannot know yet."""
SIGNATURE = "4dabf18193072939515e22adb298388d"
SECRET = "1b47061264138c4ac30d75fd1eb44270"  # noqa: S105  # The engine's mark of a secret, not one.
MARK_PATTERN = r"^[0-9a-f]{8}$"
ObjectId = Annotated[str, pydantic.StringConstraints(pattern=r"^[0-9]+$")]


def to_python(struct: struct_pb2.Struct) -> dict[str, Any]:
    """Read a struct: whole numbers become ints, nulls are left out, secrets lose their wrapping."""
    return _plain(json_format.MessageToDict(struct))


def to_struct(values: Mapping[str, Any]) -> struct_pb2.Struct:
    """Write a struct, without the members that are None."""
    struct = struct_pb2.Struct()
    json_format.ParseDict({key: _listed(value) for key, value in values.items() if value is not None}, struct)
    return struct


def has_unknown(value: Any) -> bool:
    """Tell whether an unknown stands anywhere in ``value``."""
    if isinstance(value, Mapping):
        return any(has_unknown(member) for member in value.values())
    if isinstance(value, list | tuple):
        return any(has_unknown(member) for member in value)
    return value == UNKNOWN


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        if value.get(SIGNATURE) == SECRET:
            return _plain(value.get("value"))
        return {key: _plain(member) for key, member in value.items() if member is not None}
    if isinstance(value, list):
        return [_plain(member) for member in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _listed(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _listed(member) for key, member in value.items() if member is not None}
    return [_listed(member) for member in value] if isinstance(value, list | tuple) else value


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with one input."""

    key: str
    reason: str


class Spec(pydantic.BaseModel):
    """The base of every resource's inputs: camelCase on the wire, unknown keys refused."""

    model_config = pydantic.ConfigDict(alias_generator=to_camel, extra="forbid", frozen=True, populate_by_name=True)

    @classmethod
    def of(cls, inputs: Mapping[str, Any]) -> Self:
        """Read checked inputs."""
        return cls.model_validate(dict(inputs))


def problems(spec: type[Spec], inputs: Mapping[str, Any]) -> list[Problem]:
    """Say what is wrong with ``inputs``; what a preview cannot know yet is never judged."""
    try:
        spec.of(inputs)
    except pydantic.ValidationError as error:
        return [_problem(found) for found in error.errors() if not has_unknown(found["input"])]
    return []


def other_mark(inputs: Mapping[str, Any], old_inputs: Mapping[str, Any]) -> list[Problem]:
    """Refuse another mark than the recorded one: it is never a diff."""
    recorded = old_inputs.get("mark")
    if not recorded or recorded == inputs.get("mark"):
        return []
    sentence = (
        f"the state belongs to owner mark {recorded}, the stack's key pair gives {inputs.get('mark')}. "
        "Put the stack's own key folder back: what was rented is found by the first mark only."
    )
    return [Problem("mark", sentence)]


@dataclass(frozen=True)
class Difference:
    """Which inputs changed, and which of those need a new object."""

    changed: tuple[str, ...]
    replacing: tuple[str, ...]


def difference(old: Mapping[str, Any], new: Mapping[str, Any], replace_on: Collection[str]) -> Difference:
    """Compare inputs with inputs; outputs never count, because the account resolves names into ids and dates."""
    changed = tuple(sorted(key for key in {*old, *new} if old.get(key) != new.get(key)))
    return Difference(changed, tuple(key for key in changed if key in replace_on))


def _problem(found: Any) -> Problem:
    path = ".".join(str(step) for step in found["loc"])
    reason = {"extra_forbidden": "is no property of this resource", "missing": "is missing"}.get(found["type"])
    return Problem(path, reason or found["msg"].removeprefix("Value error, "))
