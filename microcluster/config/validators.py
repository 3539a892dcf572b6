"""Checks of single values of a stack file."""

import re
from pathlib import Path

from core.plain_text import shown
from microcluster.jobs.image import EXAMPLE

COMPONENT = r"[a-z0-9]+(?:(?:\.|__?|-+)[a-z0-9]+)*"
IMAGE = re.compile(
    rf"(?=[^/]*\.)[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::[0-9]{{1,5}})?(?:/{COMPONENT})+"
    r"(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@sha256:[0-9a-f]{64})?"
)
LONGEST_IMAGE = 255
PATH_BEGINNING = re.compile(r"(~|\$(MICROCLUSTER_HOME|HOME)|\$\{(MICROCLUSTER_HOME|HOME)\})?/")
LONGEST_PATH = 1024
FORBIDDEN_IN_PATHS = "$`\\\"'<>|;&*?{}"


def key_file(value: str) -> str:
    """Accept the path of a key file."""
    problem = problem_of_path(value)
    if problem:
        raise ValueError(problem)
    return value


def image_reference(value: str) -> str:
    """Accept a container image reference with its registry."""
    if len(value) > LONGEST_IMAGE or not IMAGE.fullmatch(value):
        raise ValueError(f"{shown(value)} is not a full image reference; for example {EXAMPLE}")
    return value


def run_or_reason(value: str) -> str:
    """Accept "run", or "skip: " with a reason."""
    if not re.fullmatch(r"run|skip: [^\s][ -~]{7,199}", value):
        raise ValueError(f"{shown(value)} is neither 'run' nor 'skip: ' with a reason of 8 to 200 characters")
    return value


def problem_of_path(path: object) -> str | None:
    """Return why this is no path of a file; the value is never repeated, since it may be a key."""
    begins = PATH_BEGINNING.match(path) if isinstance(path, str) else None
    if not isinstance(path, str) or not begins:
        return "is not the path of a file; begin with ~/, / or $MICROCLUSTER_HOME/, for example ~/.microcluster/ngc_key"
    rest = path[begins.end() :]
    if not rest.isprintable() or any(character in rest for character in FORBIDDEN_IN_PATHS) or ".." in Path(path).parts:
        return "has '..' or special characters in it; write the path out"
    return None if len(path) <= LONGEST_PATH else f"is longer than {LONGEST_PATH} characters"
