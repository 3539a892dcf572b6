"""Start a supervisor that outlives the connection, unless one is alive; its lock says whether one is."""

import fcntl
import os
import subprocess
import sys
import time

from agent import spec
from agent.kill_run import RUN_VARIABLE

START_TIMEOUT_S = 30
LOOK_TIMEOUT_S = 1
"""Whoever looks whether a supervisor is alive has its lock for a moment, and is not taken for one."""
SYSTEMD = "/run/systemd/system"


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
