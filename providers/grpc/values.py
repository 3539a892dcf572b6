"""Pulumi's wire values as Python values and back: numbers, nulls, unknowns, secrets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from google.protobuf import json_format, struct_pb2

UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
"""What stands for a value that a preview cannot know yet."""
SIGNATURE = "4dabf18193072939515e22adb298388d"
SECRET = "1b47061264138c4ac30d75fd1eb44270"  # noqa: S105  # The engine's mark of a secret, not one.


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
