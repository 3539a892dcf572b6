"""Which texts of a stack file are the path of a file of the person's own."""

from __future__ import annotations

import re
from pathlib import Path

BEGINNING = re.compile(r"(~|\$(MICROCLUSTER_HOME|HOME)|\$\{(MICROCLUSTER_HOME|HOME)\})?/")
LONGEST_PATH = 1024
STRANGE_SIGNS = "$`\\\"'<>|;&*?{}"


def problem_of_path(path: object) -> str | None:
    """Say why this is not the path of a file of the person's own; the value is never repeated, for it may be a key."""
    begins = BEGINNING.match(path) if isinstance(path, str) else None
    if not isinstance(path, str) or not begins:
        return "is not the path of a file; begin with ~/, / or $MICROCLUSTER_HOME/, for example ~/.microcluster/ngc_key"
    rest = path[begins.end() :]
    if not rest.isprintable() or any(sign in rest for sign in STRANGE_SIGNS) or ".." in Path(path).parts:
        return "has '..' or signs in it that no path of ours has; write the path out"
    return None if len(path) <= LONGEST_PATH else f"is longer than {LONGEST_PATH} signs"
