"""The problems of a stack file, by its keys."""

import difflib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from core.plain_text import printable, shown
from microcluster.jobs.image import EXAMPLE

EXAMPLES = {"container/image": EXAMPLE, "job/maxSteps": "50000"}
"""Of values that every stack file has; the account has those of ``cluster``."""


class ConfigError(Exception):
    """All problems of one stack file, with paths and suggestions."""


def sentence(error: Any, keys_at: Callable[[list[str]], list[str]], examples: Mapping[str, str]) -> str:
    """Return a problem that pydantic found as ``path: problem; what to do``."""
    location = [printable(str(part)) for part in error["loc"]]
    path, value = "/".join(location), error.get("input")
    if error["type"] == "extra_forbidden":
        return unknown_key(path, location[-1], keys_at(location[:-1]))
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
