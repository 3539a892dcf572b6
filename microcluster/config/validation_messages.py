"""What is wrong with the keys and values of a stack file, in sentences: unknown keys, missing ones, and values that are not allowed."""

import difflib
from collections.abc import Mapping, Sequence
from typing import Any, get_args

from pydantic import BaseModel

from core.plain_text import printable, shown
from microcluster.config.sections import StackFile
from microcluster.jobs.image import EXAMPLE

EXAMPLES = {"container/image": EXAMPLE, "job/maxSteps": "50000"}
"""Of values that every stack file has; the account has those of ``cluster``."""


def _keys_at(file: type[StackFile], location: list[str]) -> list[str]:
    """Return the known keys below a path of the stack file."""
    section: type[BaseModel] = file
    for part in location:
        field = section.model_fields.get(part)
        kinds = (get_args(field.annotation) or (field.annotation,)) if field else ()
        section = next((each for each in kinds if hasattr(each, "model_fields")), section)
    return [field.alias or name for name, field in section.model_fields.items()]


def sentence(error: Any, file: type[StackFile], examples: Mapping[str, str]) -> str:
    """Return a problem that pydantic found as ``path: problem; what to do``."""
    location = [printable(str(part)) for part in error["loc"]]
    path, value = "/".join(location), error.get("input")
    if error["type"] == "extra_forbidden":
        return unknown_key(path, location[-1], _keys_at(file, location[:-1]))
    if error["type"] == "missing":
        example = examples.get(path)
        return f"{path}: is required" + (f"; for example {example}" if example else "")
    if error["type"] == "value_error":
        return f"{path}: {error['ctx']['error']}"
    return f"{path}: {shown(value)} {error['msg'].replace('Input should be', 'should be')}"


def unknown_key(path: str, key: str, known: Sequence[str]) -> str:
    """Return the problem of an unknown key, with the nearest known one."""
    near = difflib.get_close_matches(key, known, n=1)
    return f"{printable(path)}: unknown key; " + (
        f"did you mean '{near[0]}'?" if near else f"known: {', '.join(known)}"
    )
