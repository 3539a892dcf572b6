"""The user's folder, in which everything of ours lies."""

from __future__ import annotations

import os
from pathlib import Path


def home() -> Path:
    """Return ``MICROCLUSTER_HOME``, or where it is when nobody says."""
    return Path(os.environ.get("MICROCLUSTER_HOME") or "~/.microcluster").expanduser().absolute()
