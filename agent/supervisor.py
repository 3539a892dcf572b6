"""Carry one run through preparing, preflight and training, on the launcher.

``supervisor start FOLDER`` detaches ``supervisor run FOLDER`` unless that is alive. It reads FOLDER/job.json, and writes job.log,
progress.jsonl, phase, exit_code and failure.json in the same folder.
"""

import contextlib
import errno
import fcntl
import json
import os
import signal
import subprocess
import sys
import time

from agent import distribute_data, ensure_data, health_rules, resume, spec
from agent.idle import IdleWatch
from agent.kill_run import RUN_VARIABLE
from agent.liveness import Liveness
from agent.monitor import Monitor
from agent.preflight_checks import PreflightFailed, preflight
from agent.processes import end_all, run_all
from agent.readers import reader_of
from agent.run_context import Run

START_TIMEOUT_S = 30
LOCK_TIMEOUT_S = 2
LOOK_TIMEOUT_S = 1
"""Whoever looks whether a supervisor is alive has its lock for a moment, and is not taken for one."""
SYSTEMD = "/run/systemd/system"
TERMINATED = 143
SSH_FAILED = 255
"""What ssh ends with when it could not reach or log in to the other machine; its last line says why."""


class Failed(Exception):
    """A phase ended badly; the arguments are the cause in a word, a sentence, the exit code and the lines that matter."""


class Stopped(BaseException):
    """Somebody asked the run to stop, and ends its processes on every machine himself; no handler of failures may hold it up."""


def carry_out(run):
    """Take the run from where it stands to its end."""
    run.remove("exit_code", "stopped", "failure.json", "preflight.json", "ranks_ended.jsonl")
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
    train(run, resumed(run) if checkpoint else run.spec.processes)


def prepare(run):
    """Have data, checkpoint and configuration where the ranks look for them; return the files of the checkpoint."""
    wrong = ensure_data.ensure(run)
    if wrong:
        what, code, lines = wrong
        raise Failed(
            cause_of(lines, "preparing"), what + " ended with exit code " + str(code) + last_reason(lines), code, lines
        )
    try:
        resume.bring_back(run)
        checkpoint = resume.latest_checkpoint(run)
    except resume.NotBroughtBack as failed:
        raise Failed("not-brought-back", failed.args[0], 1, []) from failed
    run.keep_ballast()
    place(run, checkpoint)
    return checkpoint


def place(run, checkpoint):
    """Bring configuration, programs and data to the other machines; the data go from each to the next."""
    others = run.spec.addresses[1:]
    for address in others:
        run.doing = "bringing the configuration to " + run.name_of(address)
        must(run, "placing", run.doing, run.spec.place + [address] + checkpoint)
    lines = []
    run.doing = "bringing the data to " + " and ".join(run.name_of(address) for address in others)
    code = run.in_container(run.spec.spread + others, lines.append) if others and run.spec.data else 0
    for event in (
        json.loads(line[len(distribute_data.MARK) :]) for line in lines if line.startswith(distribute_data.MARK)
    ):
        run.emit(dict(event, to=[run.name_of(address) for address in event["to"]]))
    if code:
        output = " ".join(run.name_of(word) for word in (lines or ["no word"])[-1].split())
        raise Failed(
            cause_of(lines, "placing"), "bringing the data to the other machines: " + output, code, lines[-20:]
        )


def cause_of(lines, usual):
    """Return the cause of a step that failed: a full disk where anybody says so."""
    return health_rules.DISK_FULL if os.strerror(errno.ENOSPC) in " ".join(lines) else usual


def last_reason(lines):
    """Return what a staging refused with, which is the reason and not only a sign of it."""
    output = [line[len(ensure_data.MARK) :] for line in lines[-1:] if line.startswith(ensure_data.MARK)]
    return ": " + output[0] if output else ""


def must(run, cause, what, argv):
    """Run a step; what it printed last goes with its failure."""
    lines = []
    code = run.in_container(argv, lines.append)
    if code:
        how = ": " + lines[-1] if code == SSH_FAILED and lines else " ended with exit code " + str(code)
        raise Failed(cause, what + how, code, lines[-20:])


def resumed(run):
    """Return the processes that go on from the chosen checkpoint, whose path replaces spec.CHECKPOINT in their argv."""
    for process in run.spec.resume_processes:
        process.argv = [word.replace(spec.CHECKPOINT, run.resumed_from) for word in process.argv]
    return run.spec.resume_processes


def train(run, processes):
    """Run the ranks under the monitor, and leave none of them behind."""
    reader = reader_of(run.spec)
    monitor = Monitor(run, reader.explains)
    monitor.begin()
    try:
        code, last = run_all(run, processes, lambda line: emit_all(run, monitor.observe(line, reader.read(line))))
    except Exception:  # The log could not be written, or what nobody thought of: the ranks would go on unseen.
        end_all(run)
        raise
    finally:
        monitor.leave()
    verdict = monitor.judgement() if code else monitor.verdict
    if code and not verdict:
        verdict = monitor.silent() or monitor.read_exit_notes()
    if code or verdict:
        end_all(run)
    if verdict:
        raise Failed(verdict[0], verdict[1], code or 1, verdict[2])
    if code:
        what = "training" if len(processes) == 1 else last.role + " on " + run.spec.names[last.node]
        raise Failed("training", what + " ended with exit code " + str(code), code, monitor.lines())
    monitor.finish_copies()


def emit_all(run, events):
    for event in events:
        run.emit(event)


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
        if code or Run(folder).spec.max_steps <= run.spec.max_steps:
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
        run.write("stopped", "")
    except Exception as error:  # noqa: BLE001 - nobody else could tell
        code, failure = 1, explained(error)
    liveness.stop()
    run.remove("ballast")  # There may be no room for the words that follow.
    if failure:
        run.write("failure.json", json.dumps(failure) + "\n")
    run.emit({"event": "end", "exit_code": code})
    run.write("exit_code", str(code) + "\n")
    return code


def explained(error):
    """Return an error of our own as a failure."""
    if health_rules.is_full(error):
        return {
            "cause": health_rules.DISK_FULL,
            "sentence": "no space is left on the launcher's data disk",
            "lines": [],
        }
    return {"cause": "supervisor-failed", "sentence": "the supervisor failed: " + repr(error), "lines": []}


def on_term(number, frame):
    raise Stopped()


def try_lock(folder, timeout_s):
    """Return the open lock file of a living supervisor, or None when another one has it."""
    file = open(os.path.join(folder, "supervisor.lock"), "w")  # noqa: SIM115 - the lock is the open file
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return file
        except OSError:
            if time.monotonic() >= deadline:
                file.close()
                return None
            time.sleep(0.1)


def start(folder):
    """Detach a supervisor; print ``alive`` when there is one already, ``started`` when there is one now."""
    lock = try_lock(folder, LOOK_TIMEOUT_S)
    if lock is None:
        print("alive")
        return 0
    try:
        spec.read(os.path.join(folder, spec.FILE))
    except spec.SpecError as error:
        print(error)
        return 1
    ended = os.path.join(folder, "exit_code")
    for left in (ended, os.path.join(folder, "alive_at")):  # Of an earlier attempt, and would be taken for this one's.
        if os.path.exists(left):
            os.remove(left)
    lock.close()
    run = os.path.basename(folder)
    argv = [sys.executable, os.path.join(folder, "agent"), "supervisor", "run", folder]
    if os.path.isdir(SYSTEMD):
        unit = "microcluster-" + run
        said_in = "journalctl -u " + unit
        # An earlier attempt that failed keeps the name; --collect would free it, but Ubuntu 16.04's systemd does not know it.
        subprocess.call(["systemctl", "reset-failed", unit + ".service"], stderr=subprocess.DEVNULL)
        words = ["systemd-run", "--quiet", "--unit=" + unit, "--setenv=" + RUN_VARIABLE + "=" + run]
        subprocess.check_call(words + argv)
    else:
        said_in = os.path.join(folder, "supervisor.log")
        with open(said_in, "ab") as log:
            environment = dict(os.environ, **{RUN_VARIABLE: run})
            options = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log, "start_new_session": True}
            subprocess.Popen(argv, env=environment, cwd="/", **options)
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline:
        lock = try_lock(folder, 0)
        if lock is None or os.path.exists(ended):
            print("started")
            return 0
        lock.close()
        time.sleep(0.1)
    print("the supervisor did not start within " + str(START_TIMEOUT_S) + " s; see " + said_in)
    return 1


def main(verb, folder):
    return {"start": start, "run": supervise}[verb](folder)
