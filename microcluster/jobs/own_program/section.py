"""The ``job`` section of a stack file that brings its own program."""

from __future__ import annotations

import re
import shlex
from typing import Annotated

from pydantic import AfterValidator, Field, StrictStr

from microcluster.jobs.values import Section

LONGEST = 1000
SOURCE = re.compile(r"https://[A-Za-z0-9.-]+(/[A-Za-z0-9_.~-]+)+|(~|\.{1,2}|\$MICROCLUSTER_HOME)?/?[A-Za-z0-9_./ -]*")
SCRIPT = re.compile(r"(?!.*\.\.)[A-Za-z0-9_][A-Za-z0-9_./-]*\.py")
REQUIREMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(\[[a-z0-9,_-]+\])?==[A-Za-z0-9.+!-]+")


def matching(pattern: re.Pattern[str], what: str) -> AfterValidator:
    def check(value: str) -> str:
        if not pattern.fullmatch(value):
            raise ValueError(f"{value[:80]!r} is not {what}")
        return value

    return AfterValidator(check)


def _words(value: str) -> str:
    """Take words as a shell splits them; no shell ever sees them."""
    try:
        shlex.split(value)
    except ValueError as error:
        raise ValueError(f"{value[:80]!r} cannot be split into words: {error}") from error
    if not value.isprintable():
        raise ValueError(f"{value[:80]!r} holds signs that cannot be printed")
    return value


def regular_expression(value: str) -> str:
    try:
        names = set(re.compile(value).groupindex)
    except re.error as error:
        raise ValueError(f"{value[:80]!r} is no regular expression: {error}") from error
    if "step" not in names:
        raise ValueError(f"{value[:80]!r} has no group of the name step: (?P<step>\\d+)")
    return value


def json_or_pattern(value: str) -> str:
    return value if value == "json" else regular_expression(value)


Words = Annotated[StrictStr, Field(max_length=LONGEST), AfterValidator(_words)]


class OwnProgramSection(Section):
    """One run of the user's own program. ``{logdir}``, ``{maxSteps}`` and ``{checkpoint}`` are filled in."""

    source: Annotated[StrictStr, matching(SOURCE, "a folder, or the https address of a repository")]
    commit: Annotated[StrictStr, Field(pattern=r"^[0-9a-f]{40}$")] | None = None
    script: Annotated[StrictStr, matching(SCRIPT, "the path of a Python script below the source")]
    arguments: Words = ""
    requirements: tuple[
        Annotated[StrictStr, matching(REQUIREMENT, "a pinned requirement; for example numpy==1.23.5")], ...
    ] = ()
    progress: Annotated[StrictStr, Field(max_length=LONGEST), AfterValidator(json_or_pattern)] = "json"
    checkpoints: Annotated[StrictStr, Field(max_length=LONGEST), AfterValidator(regular_expression)]
    resume: Words | None = None
