"""Problems of the keys and values of a stack file, in sentences: unknown keys, missing ones, and values that are not allowed."""

import difflib
from collections.abc import Sequence
from typing import Any, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from microcluster.config.sections import StackFile
from microcluster.core.plain_text import printable, shown


def _fields_at(file: type[StackFile], location: list[str]) -> dict[str, FieldInfo]:
    """Return the fields below a path of the stack file, by their keys."""
    section: type[BaseModel] = file
    for part in location:
        field = section.model_fields.get(part)
        kinds = (get_args(field.annotation) or (field.annotation,)) if field else ()
        section = next((each for each in kinds if hasattr(each, "model_fields")), section)
    return {field.alias or name: field for name, field in section.model_fields.items()}


def sentence(error: Any, file: type[StackFile]) -> str:
    """Return a problem that pydantic found as ``path: problem; what to do``."""
    location = [printable(str(part)) for part in error["loc"]]
    path, value, fields = "/".join(location), error.get("input"), _fields_at(file, location[:-1])
    if error["type"] == "extra_forbidden":
        return unknown_key(path, location[-1], list(fields))
    field = fields.get("".join(location[-1:]))
    example = field.examples[0] if field and field.examples else ""
    if error["type"] == "missing":
        return f"{path}: is required" + (f"; for example {example}" if example else "")
    if error["type"] == "model_type":
        return f"{path}: {shown(value)} should be a section with keys"
    if error["type"] == "value_error":
        return f"{path}: {error['ctx']['error']}"
    if error["type"] == "string_type" and isinstance(value, int | float) and not isinstance(value, bool):
        quoted = example or f"'{value}'"
        return f"{path}: {shown(value)} is a number, and a text is wanted; write it in quotes, for example {quoted}"
    return f"{path}: {shown(value)} {error['msg'].replace('Input should be', 'should be')}"


def unknown_key(path: str, key: str, known: Sequence[str]) -> str:
    """Return the problem of an unknown key, with the nearest known one."""
    near = difflib.get_close_matches(key, known, n=1)
    return f"{printable(path)}: unknown key; " + (
        f"did you mean '{near[0]}'?" if near else f"known: {', '.join(known)}"
    )
