"""The ``job`` section of a stack file that brings its own program."""

import re
import shlex
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, StrictInt, StrictStr

from core.plain_text import shown
from microcluster.jobs.values import MOST_STEPS, Section, matching

LONGEST = 1000
SOURCE = re.compile(r"https://[A-Za-z0-9.-]+(/[A-Za-z0-9_.~-]+)+|(~|\.{1,2}|\$MICROCLUSTER_HOME)?/?[A-Za-z0-9_./ -]*")
SCRIPT = re.compile(r"(?!.*\.\.)[A-Za-z0-9_][A-Za-z0-9_./-]*\.py")
REQUIREMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(\[[a-z0-9,_-]+\])?==[A-Za-z0-9.+!-]+")

COMMAND = re.compile(r"(/[A-Za-z0-9_.+-]+)+|[A-Za-z][A-Za-z0-9_.+-]*")
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
SECRET = re.compile(r".*(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)(_.*)?", re.IGNORECASE)
"""As a word of the name: TOKENIZERS_PARALLELISM holds no secret."""
TAKEN = re.compile(
    r"PATH|PORT|MICROCLUSTER_.*|RANK|WORLD_SIZE|LOCAL_(RANK|WORLD_SIZE)|(GROUP|ROLE)_(RANK|WORLD_SIZE|NAME)|MASTER_(ADDR|PORT)|"
    r"(NCCL|GLOO|TP)_SOCKET_IFNAME|OMPI_COMM_WORLD_.*|DMLC_(ROLE|PS_ROOT_URI|PS_ROOT_PORT|NUM_SERVER|NUM_WORKER|NODE_HOST)|"
    r"WANDB_(MODE|DIR|RUN_ID|RESUME)"
)
"""What finds the programs and places the ranks; another value would break the run or be ignored."""


REPEATED_TWICE = re.compile(r"\((?:\?:|\?P<\w+>)?(?:\\.|\[[^\]]+\]|[^\\()\[])[+*]\)[+*]")
"""What is repeated already, repeated as a whole: each further character of a line doubles the time of a search."""


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
    twice = REPEATED_TWICE.search(value)
    if twice:
        raise ValueError(f"{value[:80]!r} repeats what is repeated already, which can take for ever: {twice.group()}")
    if "step" not in names:
        raise ValueError(f"{value[:80]!r} has no group of the name step: (?P<step>\\d+)")
    return value


def json_or_pattern(value: str) -> str:
    return value if value == "json" else regular_expression(value)


def _variables(found: Any) -> Any:
    """Take whole numbers as texts; a yes or no, or a fraction, is one thing in YAML and another to a program."""
    if not isinstance(found, dict):
        raise ValueError("is no mapping of names and values; for example OMP_NUM_THREADS: 4")
    problems = [problem for name, value in found.items() if (problem := _problem_of_variable(name, value))]
    if problems:
        raise ValueError("; ".join(problems))
    return {name: str(value) for name, value in found.items()}


def _problem_of_variable(name: Any, value: Any) -> str | None:
    if not isinstance(name, str) or not VARIABLE.fullmatch(name):
        return f"{shown(name)} is no name of an environment variable: letters, digits and _"
    if SECRET.fullmatch(name):
        return (
            f"{name} looks like a secret, and a stack file holds none: put it into a file on the machines (`fab ssh` opens a shell "
            "there) that the program reads; WANDB_API_KEY is taken from your own environment"
        )
    if TAKEN.fullmatch(name):
        return f"{name} is set by what starts the ranks; leave it out"
    if isinstance(value, bool) or not isinstance(value, str | int):
        return f"{name} has to be a text; put its value in quotes"
    if not str(value).isprintable() or len(str(value)) > LONGEST:
        return f"the value of {name} holds signs that cannot be printed, or is longer than {LONGEST} characters"
    return None


Words = Annotated[StrictStr, Field(max_length=LONGEST), AfterValidator(_words)]


class OwnProgramSection(Section):
    """One run of the user's own program. ``{logdir}``, ``{maxSteps}`` and ``{checkpoint}`` are filled in."""

    max_steps: Annotated[StrictInt, Field(ge=1, le=MOST_STEPS)] | None = None
    source: Annotated[StrictStr, matching(SOURCE, "a folder, or the https address of a repository")]
    commit: Annotated[StrictStr, Field(pattern=r"^[0-9a-f]{40}$")] | None = None
    script: Annotated[StrictStr, matching(SCRIPT, "the path of a Python script below the source")]
    arguments: Words = ""
    requirements: tuple[
        Annotated[StrictStr, matching(REQUIREMENT, "a pinned requirement; for example numpy==1.23.5")], ...
    ] = ()
    progress: Annotated[StrictStr, Field(max_length=LONGEST), AfterValidator(json_or_pattern)] = "json"
    checkpoints: Annotated[StrictStr, Field(max_length=LONGEST), AfterValidator(regular_expression)] | None = None
    resume: Words | None = None
    python: Annotated[StrictStr, matching(COMMAND, "a command or an absolute path; for example python3.9")] | None = (
        None
    )
    environment: Annotated[dict[str, str], BeforeValidator(_variables)] = Field(default_factory=dict)
