"""Values as they go over the wire, and what changed in them."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from google.protobuf import json_format, struct_pb2

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
class Difference:
    """Which inputs changed, and which of those need a new object."""

    changed: tuple[str, ...]
    replacing: tuple[str, ...]


def difference(old: Mapping[str, Any], new: Mapping[str, Any], replace_on: Collection[str]) -> Difference:
    """Compare inputs with inputs; outputs never count, because the account resolves names into ids and dates."""
    changed = tuple(sorted(key for key in {*old, *new} if old.get(key) != new.get(key)))
    return Difference(changed, tuple(key for key in changed if key in replace_on))
