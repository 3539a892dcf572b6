"""Where a user's things lie."""

from __future__ import annotations

import os
import re
from pathlib import Path
from string import Template

BEGINNING = re.compile(r"(~|\$(MICROCLUSTER_HOME|HOME)|\$\{(MICROCLUSTER_HOME|HOME)\})?/")
LONGEST_PATH = 1024
STRANGE_SIGNS = "$`\\\"'<>|;&*?{}"


def home() -> Path:
    """Return the folder of everything that belongs to this user."""
    return Path(os.environ.get("MICROCLUSTER_HOME") or "~/.microcluster").expanduser().absolute()


def expand(path: str) -> Path:
    """Return a path of a stack file, which may begin with ``~/`` or ``$MICROCLUSTER_HOME/``, as the provider reads it too.

    No other variable is filled in: its value, which may be a key, would stand in the error about a file that is not there.
    """
    named = Template(path).safe_substitute(HOME=str(Path.home()), MICROCLUSTER_HOME=str(home()))
    return Path(named).expanduser().absolute()


def problem_of_path(path: object) -> str | None:
    """Say why this is not the path of a file of the person's own; the value is never repeated, for it may be a key."""
    begins = BEGINNING.match(path) if isinstance(path, str) else None
    if not isinstance(path, str) or not begins:
        return "is not the path of a file; begin with ~/, / or $MICROCLUSTER_HOME/, for example ~/.microcluster/ngc_key"
    rest = path[begins.end() :]
    if not rest.isprintable() or any(sign in rest for sign in STRANGE_SIGNS) or ".." in Path(path).parts:
        return "has '..' or signs in it that no path of ours has; write the path out"
    return None if len(path) <= LONGEST_PATH else f"is longer than {LONGEST_PATH} signs"
