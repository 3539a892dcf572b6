"""The problems of a stack file, by its keys."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from typing import Any

from microcluster.config.safe_yaml import printable, shown
from microcluster.jobs.image import EXAMPLE

EXAMPLES = {
    "cluster/datacenter": "lon04",
    "cluster/flavor": "AC2_16X120X100",
    "cluster/adminCidrs": "[198.51.100.7/32]",
    "container/image": EXAMPLE,
    "job/maxSteps": "50000",
}


class ConfigError(Exception):
    """All problems of one stack file, with paths and suggestions."""


def sentence(error: Any, keys_at: Callable[[list[str]], list[str]]) -> str:
    """Return a problem that pydantic found as ``path: problem; what to do``."""
    location = [printable(str(part)) for part in error["loc"]]
    path, value = "/".join(location), error.get("input")
    if error["type"] == "extra_forbidden":
        return unknown_key(path, location[-1], keys_at(location[:-1]))
    if error["type"] == "missing":
        example = EXAMPLES.get(path)
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
