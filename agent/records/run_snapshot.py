"""Read one run's folder and print it as one JSON line. Argument: the folder."""

import contextlib
import json
import os
import time
from typing import Any, Dict, Optional

from agent.formats.checkpoints.log_folder import checkpoints_in, why_checkpoints_silent
from agent.machine import read_json
from agent.run import document, event_summary
from agent.run.records import ACTIVITY, is_alive, text_of

MOST_SHOWN = 1000
"""Checkpoints of a run."""


def silence(folder: str) -> Optional[float]:
    """Return for how many seconds its supervisor has shown no sign of life; None where it has never shown one."""
    marked = text_of(os.path.join(folder, "alive_at"))
    return time.monotonic() - float(marked) if marked else None


def activity(folder: str) -> Dict[str, Any]:
    """Return what the newest samples of the nodes say, with their age; nothing where there was none."""
    path = os.path.join(folder, ACTIVITY)
    found = read_json(path)
    return dict(found, age_s=time.time() - os.path.getmtime(path)) if found else {}


def observe(folder: str) -> Dict[str, Any]:
    def at(name: str) -> str:
        return os.path.join(folder, name)

    silent = why_checkpoints_silent(folder)  # First: a drive may take seconds to show that it is silent.
    alive = is_alive(folder)  # Before the exit code: a supervisor that is gone has written its own by then.
    code = text_of(at("exit_code"))
    regular, best = set(), []
    if not silent:
        with contextlib.suppress(FileNotFoundError, document.SpecError):  # One of another version is seen by who looks.
            checkpoints = checkpoints_in(folder)
            for step, name in checkpoints.found():
                if checkpoints.is_best(name):
                    best.append(os.path.basename(name))
                else:
                    regular.add(step)
    return {
        "now": time.time(),
        "exists": os.path.exists(at("job.json")),
        "alive": alive,
        "phase": text_of(at("phase")),
        "exit_code": int(code) if code else None,
        "stopped": os.path.exists(at("stopped")),
        "failure": read_json(at("failure.json")),
        "job": read_json(at("job.json")),
        "preflight": read_json(at("preflight.json")),
        "events": event_summary.read(folder).events,
        "silent_s": silence(folder),
        "activity": activity(folder),
        "drive_silent": silent,
        "checkpoints": sorted(regular)[-MOST_SHOWN:],
        "best": sorted(best)[-MOST_SHOWN:],
    }


def main(folder: str) -> None:
    print(json.dumps(observe(folder)))
