"""Count for how long nothing has happened on the nodes of a run that is over, however it ended: its person may have forgotten them.

``supervise.idle_watch FOLDER`` goes on until a run is started here, or until the limit or the folder has gone.
"""

import contextlib
import glob
import json
import os
import time

from agent.machine import is_locked, try_lock
from agent.run import document, event_summary
from agent.run.context import Run
from agent.run.records import ACTIVITY, RUN_LOCK, WATCH_LOCK
from agent.supervise import guard
from agent.supervise.idle import Idleness
from agent.supervise.node_samples import sampled


def main(folder: str) -> int:
    lock = try_lock(os.path.join(folder, WATCH_LOCK))
    if lock:
        watch(Run(folder))
    return 0


def watch(run: Run) -> None:
    """Write down how long the nodes have been idle, for as long as somebody wants to know it."""
    idleness, events = Idleness(run.spec), event_summary.read(run.folder).events
    armed = any(event["event"] == "train" for event in events if event)
    while is_wanted(run):
        with contextlib.suppress(Exception):  # What is not written grows old, and is not believed.
            idleness.observe(sampled(run), guard.boottime())
            if is_wanted(run):  # Asking the nodes takes long enough for a run to start, which writes the same file.
                run.write(ACTIVITY, json.dumps({"idle_s": idleness.idle_s(), "armed": armed}))
        time.sleep(run.spec.limits.sample_every_s)


def is_wanted(run: Run) -> bool:
    """Return whether idle time is limited and no run goes on here, be it another one."""
    runs = glob.glob(os.path.join(os.path.dirname(run.folder), "*", RUN_LOCK))
    limited = guard.RunLimits(run).limits().get("idle_s") and os.path.exists(run.path(document.FILE))
    return bool(limited) and not any(map(is_locked, runs))
