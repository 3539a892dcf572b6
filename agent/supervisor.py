"""Carry one run through preparing, preflight and training, on the launcher.

``supervisor start FOLDER`` detaches ``supervisor run FOLDER`` unless that is alive. It reads FOLDER/job.json, and writes job.log,
progress.jsonl, phase, exit_code and failure.json in the same folder.
"""

import contextlib
import json
import os
import signal

from agent.detach import start, try_lock
from agent.failure import Failed, Stopped, explained
from agent.idle import IdleWatch
from agent.kill_run import STOP_FILE
from agent.liveness import Liveness
from agent.preflight_checks import PreflightFailed, preflight
from agent.prepare import prepare
from agent.run_context import Run
from agent.train import train

LOCK_TIMEOUT_S = 2
TERMINATED = 143


def carry_out(run):
    """Take the run from where it stands to its end."""
    run.remove("exit_code", STOP_FILE, "failure.json", "preflight.json", "ranks_ended.jsonl")
    run.enter("preparing")
    with contextlib.suppress(OSError):  # On a full disk, removing old checkpoints makes room before it is tried again.
        run.keep_ballast()
    idle = IdleWatch(run)
    idle.begin()
    try:
        checkpoint = prepare(run)
    except Failed as failed:
        verdict = idle.verdict()
        raise Failed(*(verdict + failed.args[2:] if verdict else failed.args)) from failed
    finally:
        idle.leave()
    run.enter("preflight")
    try:
        preflight(run)
    except PreflightFailed as failed:
        raise Failed("preflight", failed.args[0], 1, failed.args[1]) from failed
    run.enter("training")
    train(run, run.spec.resume_processes if checkpoint else run.spec.processes)


def supervise(folder):
    """Carry out the run, once more when a higher max_steps was asked for meanwhile."""
    lock = try_lock(folder, LOCK_TIMEOUT_S)
    if lock is None:
        return 0
    signal.signal(signal.SIGTERM, on_term)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    while True:
        run = Run(folder)
        code = end(run)
        if code or (Run(folder).spec.max_steps or 0) <= (run.spec.max_steps or 0):
            return code


def end(run):
    """Carry out the run and leave behind how it ended."""
    code, failure, liveness = 0, None, Liveness(run.path("alive_at"))
    try:
        run.write("supervisor.pid", str(os.getpid()) + "\n")
        liveness.begin()
        carry_out(run)
    except Failed as failed:
        cause, sentence, code, lines = failed.args
        failure = {"cause": cause, "sentence": sentence, "lines": lines}
    except Stopped:
        code = TERMINATED
        run.write(STOP_FILE, "")
    except Exception as error:  # noqa: BLE001 - nobody else could tell
        code, failure = 1, explained(error)
    liveness.stop()
    run.remove("ballast")  # There may be no room for the words that follow.
    if failure:
        run.write("failure.json", json.dumps(failure) + "\n")
    run.emit({"event": "end", "exit_code": code, "max_steps": run.spec.max_steps})
    run.write("exit_code", str(code) + "\n")
    return code


def on_term(number, frame):
    raise Stopped()


def main(verb, folder):
    return {"start": start, "run": supervise}[verb](folder)
