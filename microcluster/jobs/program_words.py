"""Types of what a stack file says of the user's own program: words, patterns, lines, variables; and what looks like a secret."""

import re
import shlex
from collections.abc import Collection
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, StrictStr

from microcluster.core.home import problem_of_path
from microcluster.core.plain_text import shown
from microcluster.jobs.job_section import matching

NUMBERED = re.compile(r"(?<!rank)(?<!rank[-_])(?<!shard)(?<!shard[-_])(\\d|\[0-9\])")
"""Part of a file pattern that matches a number, except a rank's or shard's. A pattern with one needs the group ``step``."""
LONGEST, LONGEST_WORDS = 1000, 8000
SOURCE = re.compile(
    r"https://[A-Za-z0-9.-]+(/[A-Za-z0-9_.~-]+)+|[A-Za-z0-9_][A-Za-z0-9_.-]*@[A-Za-z0-9][A-Za-z0-9.-]*:[A-Za-z0-9_.~/][A-Za-z0-9_.~/-]*|(~|\.{1,2}|\$MICROCLUSTER_HOME)?/?[A-Za-z0-9_./ -]*"
)
INDEX = re.compile(r"https://[A-Za-z0-9.-]+(:\d{1,5})?(/[A-Za-z0-9_.~+-]+)*/?")
SCRIPT = re.compile(r"(?!.*\.\.)[A-Za-z0-9_][A-Za-z0-9_./-]*\.py")
REQUIREMENT = re.compile(
    r"[A-Za-z0-9][A-Za-z0-9._-]*(\[[a-z0-9,_-]+\])?==[A-Za-z0-9.+!-]+|(?!.*\.\.)[A-Za-z0-9_][A-Za-z0-9_./-]*\.txt"
)
"""A pinned package, or a file of the source."""
LINE = re.compile(r"(?=.*\S)[^\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f]+")
POINTER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
COMMAND = re.compile(r"(/[A-Za-z0-9_.+-]+)+|[A-Za-z][A-Za-z0-9_.+-]*")
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
SECRET = re.compile(
    r"(.*PASSWORD|(.*_)?((API|ACCESS)?KEY|TOKEN|SECRET|PASSWD|PASSPHRASE|CREDENTIALS?|COOKIES?|PAT|PASS|PWD|DSN))(_.*)?",
    re.IGNORECASE,
)
"""As a whole word of the name: TOKENIZERS_PARALLELISM and MONKEY hold no secret."""
SETTING = re.compile(r"(?i)(?!.*(PASSWORD|PASSWD|PASSPHRASE)=)\w+=(-?\d{1,9}|true|false)")
"""No secret whatever its name, as MAX_TOKEN=4096; but a password may be a number."""
SECRET_VALUE = re.compile(
    r"(?i)[a-z][a-z0-9+.-]{0,30}://[^/@\s:]*:[^/@\s]+@|PRIVATE KEY-----|^(gh[opsu]_|github_pat_|glpat-|hf_|nvapi-|sk-|AKIA)[a-z0-9]{16}"
)
"""An address with a login in it, a private key, and keys that show whose they are."""
ASSIGNED = re.compile(r"(?<![\w-])([A-Za-z_]\w*)=['\"]?([^\s'\"$`]+)")
"""Variables that a line of shell sets to a text of its own."""
TAKEN = re.compile(
    r"PATH|PORT|MICROCLUSTER_.*|RANK|WORLD_SIZE|LOCAL_(RANK|WORLD_SIZE)|(GROUP|ROLE)_(RANK|WORLD_SIZE|NAME)|MASTER_(ADDR|PORT)|"
    r"NODE_RANK|(NCCL|GLOO|TP)_SOCKET_IFNAME|OMPI_COMM_WORLD_.*|"
    r"DMLC_(ROLE|PS_ROOT_URI|PS_ROOT_PORT|NUM_SERVER|NUM_WORKER|NODE_HOST)|WANDB_(MODE|DIR|RUN_ID|RESUME)"
)
"""Variables that find the programs and place the ranks; another value would break the run or be ignored."""
REPEATED_TWICE = re.compile(r"\((?:\?:|\?P<\w+>)?(?:\\.|\[[^\]]+\]|[^\\()\[])[+*]\)[+*]")
"""A repetition inside a repetition: each further character of a line doubles the time of a search."""
MOST_LINES = 50
"""Of job.setup."""


def _words(value: str) -> str:
    """Take words as a shell splits them; no shell ever sees them."""
    try:
        shlex.split(value)
    except ValueError as error:
        raise ValueError(f"{value[:80]!r} cannot be split into words: {error}") from error
    if not value.isprintable():
        raise ValueError(f"{value[:80]!r} holds signs that cannot be printed")
    return value


def _path(value: str) -> str:
    """Accept a path of a file on this computer."""
    problem = problem_of_path(value)
    if problem:
        raise ValueError(problem)
    return value


def pattern_or(*words: str, rewritten: bool = False) -> AfterValidator:
    """Accept one of some words, or a regular expression with the group ``step``.

    Args:
        rewritten: accept one without the group too, for files that are written over and over, whose names have no number.
    """

    def check(value: str) -> str:
        if value in words:
            return value
        try:
            names = set(re.compile(value).groupindex)
        except (re.error, OverflowError, RecursionError) as error:
            raise ValueError(f"{value[:80]!r} is no regular expression: {error}") from error
        twice = REPEATED_TWICE.search(value)
        if twice:
            raise ValueError(
                f"{value[:80]!r} repeats what is repeated already, which can take for ever: {twice.group()}"
            )
        if "step" not in names and (not rewritten or NUMBERED.search(value)):
            raise ValueError(f"{value[:80]!r} has no group of the name step: (?P<step>\\d+)")
        return value

    return AfterValidator(check)


def _index(value: str) -> str:
    """Accept a package index; what is refused is not repeated, because it may hold a password."""
    if not INDEX.fullmatch(value):
        raise ValueError(
            "is no https address without login, password and query; for example https://download.pytorch.org/whl/cu118"
        )
    return value


def _variables(found: Any) -> Any:
    """Take whole numbers as texts; a yes or no, or a fraction, is one thing in YAML and another to a program."""
    if not isinstance(found, dict):
        raise ValueError("is no mapping of names and values; for example OMP_NUM_THREADS: 4")
    problems = [_problem_of_variable(name, value) for name, value in found.items()]
    if any(problems):
        raise ValueError("; ".join(filter(None, problems)))
    return {name: str(value) for name, value in found.items()}


def _problem_of_variable(name: Any, value: Any) -> str | None:
    if not isinstance(name, str) or not VARIABLE.fullmatch(name):
        return f"{shown(name)} is no name of an environment variable: letters, digits and _"
    if TAKEN.fullmatch(name):
        return f"{name} is set by what starts the ranks; leave it out"
    if isinstance(value, bool) or not isinstance(value, str | int):
        return f"{name} has to be a text; put its value in quotes"
    if not str(value).isprintable() or len(str(value)) > LONGEST:
        return f"the value of {name} holds signs that cannot be printed, or is longer than {LONGEST} characters"
    return None


def is_secret(name: Any, value: Any) -> bool:
    is_named_so = SECRET.fullmatch(str(name)) and not SETTING.fullmatch(f"{name}={value}")
    return bool(is_named_so or SECRET_VALUE.search(str(value)[:LONGEST]))


def holds_secret(line: str, open_ones: Collection[str]) -> bool:
    """Return whether a line of shell holds a secret; what it takes from a variable or a file is none."""
    words = (line, *re.split(r"[^\w-]+", line))
    given = [pair for pair in ASSIGNED.findall(line) if pair[0] not in open_ones]
    return any(map(SECRET_VALUE.search, words)) or any(is_secret(*pair) for pair in given)


Words = Annotated[StrictStr, Field(max_length=LONGEST_WORDS), AfterValidator(_words)]
Requirement = Annotated[
    StrictStr,
    matching(REQUIREMENT, "a pinned requirement or a file of the source; for example numpy==1.23.5, requirements.txt"),
]
Line = Annotated[
    StrictStr,
    Field(max_length=LONGEST),
    matching(LINE, "a line of shell, which is not empty and whose signs can all be printed; write one in each item"),
]
LocalPath = Annotated[StrictStr, AfterValidator(_path)]
Index = Annotated[StrictStr, AfterValidator(_index)]
Variables = Annotated[dict[str, str], BeforeValidator(_variables)]
Source = Annotated[StrictStr, matching(SOURCE, "a folder, or the https or ssh address of a repository")]
Script = Annotated[StrictStr, matching(SCRIPT, "the path of a Python script below the source")]
Interpreter = Annotated[StrictStr, matching(COMMAND, "a command or an absolute path; for example python3.9")]
Pointer = Annotated[StrictStr, matching(POINTER, "the name of a file, without a folder")]
