"""Where a user's things lie."""

from __future__ import annotations

import os
from pathlib import Path
from string import Template


def home() -> Path:
    """Return the folder of everything that belongs to this user."""
    return Path(os.environ.get("MICROCLUSTER_HOME") or "~/.microcluster").expanduser().absolute()


def expand(path: str) -> Path:
    """Return a path of a stack file, which may begin with ``~/`` or ``$MICROCLUSTER_HOME/``, as the provider reads it too."""
    named = Template(path).safe_substitute(os.environ, MICROCLUSTER_HOME=str(home()))
    return Path(named).expanduser().absolute()
