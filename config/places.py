"""Where a user's things lie."""

from __future__ import annotations

import os
from pathlib import Path


def home() -> Path:
    """Return the folder of everything that belongs to this user."""
    return Path(os.environ.get("MICROCLUSTER_HOME") or "~/.microcluster").expanduser().absolute()


def expand(path: str) -> Path:
    """Return a path of a stack file with ``~`` and ``$MICROCLUSTER_HOME`` filled in."""
    return Path(path.replace("$MICROCLUSTER_HOME", str(home()))).expanduser()
