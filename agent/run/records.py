"""Small files of a run's folder, which say how the run is."""

import os
from typing import Optional

from agent.machine import is_locked

RUN_LOCK, WATCH_LOCK = "supervisor.lock", "idle_watch.lock"
"""Lock files: of the run's supervisor, and of the watch that counts idle time after its end."""
ACTIVITY = "activity.json"
"""The idle time by the newest samples of the nodes."""


def text_of(path: str) -> Optional[str]:
    """Return a small file's text, or None."""
    try:
        with open(path) as file:
            return file.read().strip()
    except OSError:
        return None


def is_alive(folder: str) -> bool:
    """Return whether a supervisor holds the run's lock."""
    return is_locked(os.path.join(folder, RUN_LOCK))
