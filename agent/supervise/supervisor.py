"""Carry one run through preparing, preflight and training, on the launcher.

``supervisor start FOLDER`` detaches ``supervisor run FOLDER``, which outlives the connection, unless that is alive; its lock says whether it
is. It reads FOLDER/job.json, and writes job.log, progress.jsonl, phase, exit_code and failure.json in the same folder.
"""

import contextlib
import json
import os
import signal
import sys
import threading
import time
from typing import Any

from agent.kill_run import STOP_FILE
from agent.machine import is_locked, try_lock, wait_until
from agent.run import document
from agent.run.context import Run
from agent.run.records import ACTIVITY, RUN_LOCK
from agent.supervise import guard
from agent.supervise.detached import detach
from agent.supervise.health_rules import Stopped, explained
from agent.supervise.monitor import train
from agent.supervise.preflight import preflight
from agent.supervise.prepare import IdleWatch, prepare

START_TIMEOUT_S = 30
LOOK_TIMEOUT_S = 1
"""Whoever looks whether a supervisor is alive has its lock for a moment, and is not taken for one."""
ALIVE_EVERY_S = 5
"""Seconds between two signs of life of a supervisor."""
LOCK_TIMEOUT_S = 2
REMOVE_TIMEOUT_S = 30
TERMINATED = 143


def lock_of(folder: str) -> str:
    """Return the lock that a living supervisor holds."""
    return os.path.join(folder, RUN_LOCK)


def start(folder: str) -> int:
    """Detach a supervisor; print ``running`` when there is one already, ``started`` when there is one now."""
    lock = try_lock(lock_of(folder), LOOK_TIMEOUT_S)
    if lock is None:
        print("running")
        return 0
    try:
        document.read(os.path.join(folder, document.FILE))
    except document.SpecError as error:
        print(error)
        return 1
    ended = os.path.join(folder, "exit_code")
    for name in ("exit_code", "alive_at", "phase"):  # Of an earlier attempt, and would be taken for this one's.
        with contextlib.suppress(FileNotFoundError):
            os.remove(os.path.join(folder, name))
    lock.close()
    said_in = detach(folder, [sys.executable, os.path.join(folder, "agent"), "supervise.supervisor", "run", folder])
    if wait_until(lambda: is_locked(lock_of(folder)) or os.path.exists(ended), START_TIMEOUT_S, 0.1):
        print("started")
        return 0
    print("the supervisor did not start within " + str(START_TIMEOUT_S) + " s; see " + said_in)
    return 1


def show_life(path: str, over: threading.Event) -> None:
    """Write the clock into one small file, always in the same place, until all is over: a full disk still takes it, a disk that hangs does not.

    It is the machine's monotonic clock, which no change of the time of day moves and which all processes of the machine share.
    """
    file = open(path, "wb", 0)  # noqa: SIM115 - as long as the run

    def mark() -> None:
        os.pwrite(file.fileno(), "{:020.3f}\n".format(time.monotonic()).encode(), 0)
        os.fdatasync(file.fileno())

    def go_on() -> None:
        while not over.wait(ALIVE_EVERY_S):
            with contextlib.suppress(OSError):  # A sign that is missing is what those who look shall see.
                mark()

    mark()
    threading.Thread(target=go_on, daemon=True).start()


def carry_out(run: Run) -> None:
    """Take the run from where it stands to its end."""
    run.remove("exit_code", STOP_FILE, "failure.json", "preflight.json", ACTIVITY)
    run.enter("preparing")
    # What the ranks see of them lies where only they may remove anything.
    run.ask(["rm", "-f", run.path(STOP_FILE), run.path("ranks_ended.jsonl")], REMOVE_TIMEOUT_S, marked=False)
    with contextlib.suppress(OSError):  # On a full disk, removing old checkpoints makes room before it is tried again.
        run.keep_ballast()
    with IdleWatch(run):
        checkpoint = prepare(run)
    run.enter("preflight")
    preflight(run)
    run.remove(ACTIVITY)  # Of before the run, where what wrote it had to wait for the disk.
    run.enter("training")
    train(run, run.spec.program.resume_processes if checkpoint else run.spec.program.processes)


def supervise(folder: str) -> int:
    """Carry out the run, once more when a higher max_steps was asked for meanwhile; then have its nodes watched."""
    lock = try_lock(lock_of(folder), LOCK_TIMEOUT_S)
    if lock is None:
        return 0
    signal.signal(signal.SIGTERM, on_term)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    while True:
        run = Run(folder)
        code = end(run)
        if code or (Run(folder).spec.expected.max_steps or 0) <= (run.spec.expected.max_steps or 0):
            break
    lock.close()
    if code != TERMINATED:  # Who ends the run proves meanwhile that nothing of it is left.
        guard.ensure_watched(folder, guard.RunLimits(run).limits())
    return code


def end(run: Run) -> int:
    """Carry out the run and leave behind how it ended."""
    code, failure, over = 0, None, threading.Event()
    try:
        run.write("supervisor.pid", str(os.getpid()) + "\n")
        show_life(run.path("alive_at"), over)
        carry_out(run)
    except Stopped:
        code = TERMINATED
        run.write(STOP_FILE, "")
    except Exception as error:  # noqa: BLE001 - nobody else could tell
        cause, sentence, code, lines = explained(error).args
        failure = {"cause": cause, "sentence": sentence, "lines": lines}
        if cause in guard.CAUSES:
            run.write(STOP_FILE, "")
    over.set()
    run.remove("ballast")  # There may be no room for the words that follow.
    if failure:
        run.write("failure.json", json.dumps(failure) + "\n")
    run.emit({"event": "end", "exit_code": code, "max_steps": run.spec.expected.max_steps})
    run.write("exit_code", str(code) + "\n")
    return code


def on_term(number: int, frame: Any) -> None:
    raise Stopped()


def main(verb: str, folder: str) -> int:
    return {"start": start, "run": supervise}[verb](folder)
