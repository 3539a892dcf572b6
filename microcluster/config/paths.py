"""Paths in a stack file."""

from __future__ import annotations

import re
from pathlib import Path

BEGINNING = re.compile(r"(~|\$(MICROCLUSTER_HOME|HOME)|\$\{(MICROCLUSTER_HOME|HOME)\})?/")
LONGEST_PATH = 1024
FORBIDDEN = "$`\\\"'<>|;&*?{}"


def problem_of_path(path: object) -> str | None:
    """Return why this is no path of a file; the value is never repeated, since it may be a key."""
    begins = BEGINNING.match(path) if isinstance(path, str) else None
    if not isinstance(path, str) or not begins:
        return "is not the path of a file; begin with ~/, / or $MICROCLUSTER_HOME/, for example ~/.microcluster/ngc_key"
    rest = path[begins.end() :]
    if not rest.isprintable() or any(character in rest for character in FORBIDDEN) or ".." in Path(path).parts:
        return "has '..' or special characters in it; write the path out"
    return None if len(path) <= LONGEST_PATH else f"is longer than {LONGEST_PATH} characters"
