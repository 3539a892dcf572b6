"""Limits that stop a program: the end of the lease, and idle time on all nodes. Nothing is cancelled.

``guard FOLDER TEXT`` gives a run new limits, also one that is under way. TEXT is JSON with ``stop_at`` (seconds since 1970, or null),
``left_s`` (seconds until then by the clock of whoever gives it) and ``idle_s`` (or null).
"""

import json
import os
import time
from typing import Any, Dict, Optional

from agent import program
from agent.machine import is_locked, read_json, write_whole
from agent.run import document
from agent.run.context import Run
from agent.run.records import RUN_LOCK, WATCH_LOCK
from agent.supervise.detached import detach
from agent.supervise.health_rules import Verdict

FILE = "guard.json"
"""The newest limits, in the run's folder."""
LEASE_OVER, IDLE = "lease-over", "idle"
CAUSES = (LEASE_OVER, IDLE)
UNARMED_S = 7200.0
"""Least idle limit until the first step: a program may read data or compile for long."""
BOOTTIME = 7  # CLOCK_BOOTTIME of linux/time.h, which Python 3.5 does not name.
BOOT_ID = "/proc/sys/kernel/random/boot_id"


class RunLimits:
    """The limits of a run, read anew at each look: they may be moved while it is under way."""

    def __init__(self, run: Run) -> None:
        self.path, self.first = run.path(FILE), {}
        given = run.spec.limits.guard
        if given:
            left_s = given["stop_at"] - time.time() if given["stop_at"] else None
            self.first = limits_from(left_s=left_s, **given)

    def limits(self) -> Dict[str, Any]:
        """Return the limits that were given last."""
        return read_json(self.path) or self.first

    def verdict(self, idle_s: Optional[float] = None, armed: bool = False) -> Optional[Verdict]:
        """Return a verdict once the program has to stop, else None; ``armed`` is whether a step was ever made."""
        known = self.limits()
        if is_over(known):
            return Verdict(LEASE_OVER, "stopped by the guard: lease over", [])
        limit = known.get("idle_s")
        if limit and idle_s is not None and idle_s >= (limit if armed else max(limit, UNARMED_S)):
            text = "stopped by the guard: nothing happened on any machine for {:.0f} minutes"
            return Verdict(IDLE, text.format(idle_s / 60), [])
        return None


def limits_from(stop_at: Optional[float], left_s: Optional[float], idle_s: Optional[float]) -> Dict[str, Any]:
    """Return limits as they are kept: the time that is left counts from now on by a clock that nobody sets."""
    until = None if left_s is None else boottime() + left_s
    return {"stop_at": stop_at, "until": until, "boot": boot(), "idle_s": idle_s}


def is_over(known: Dict[str, Any]) -> bool:
    """Return whether the lease is over; after a reboot only the time of day can say."""
    if known.get("until") is None:
        return False
    return boottime() >= known["until"] if known["boot"] == boot() else time.time() >= known["stop_at"]


def boottime() -> float:
    """Return the seconds since this machine was started, those in which it slept too."""
    return time.clock_gettime(BOOTTIME)


def boot() -> str:
    """Return what tells this start of the machine from others."""
    with open(BOOT_ID) as file:
        return file.read().strip()


def main(folder: str, text: str) -> int:
    """Keep the limits in ``text`` for the run in ``folder``, which may be over."""
    limits = limits_from(**json.loads(text))
    write_whole(os.path.join(folder, FILE), json.dumps(limits))
    ensure_watched(folder, limits)
    return 0


def ensure_watched(folder: str, limits: Dict[str, Any]) -> None:
    """Have idle time counted also while there is no run, where it is limited; a queue takes its nodes back by itself."""
    is_watched = any(is_locked(os.path.join(folder, lock)) for lock in (RUN_LOCK, WATCH_LOCK))
    if limits.get("idle_s") and not is_watched and not document.is_queued(folder):
        # It bears no mark: of a run that was stopped no process with its mark is left.
        detach(folder, program(folder, "supervise.idle_watch", folder), unmarked="-idle")
