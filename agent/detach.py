"""Start a supervisor that outlives the connection, unless one is alive; its lock says whether one is."""

import fcntl
import os
import pwd
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
    said_in = detach(folder, [sys.executable, os.path.join(folder, "agent"), "supervisor", "run", folder])
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


def detach(folder, argv):
    """Start ``argv`` as a unit of systemd, or in a session of its own; return where its words are."""
    run, said_in = os.path.basename(folder), os.path.join(folder, "supervisor.log")
    with open(said_in, "ab") as log:
        if os.path.isdir(SYSTEMD) and started_as_unit(run, argv, log):
            return "journalctl -u microcluster-" + run
        environment = dict(os.environ, **{RUN_VARIABLE: run})
        options = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log, "start_new_session": True}
        subprocess.Popen(argv, env=environment, cwd="/", **options)
    return said_in


def started_as_unit(run, argv, log):
    """Return whether systemd has started ``argv``; it does so for root, and for the others whom sudo takes for root."""
    unit = "microcluster-" + run
    user = pwd.getpwuid(os.geteuid()).pw_name
    root, as_user = ([], []) if os.geteuid() == 0 else (["sudo", "-n"], ["--uid=" + user])
    words = ["systemd-run", "--quiet", "--unit=" + unit] + as_user + ["--setenv=" + RUN_VARIABLE + "=" + run]
    streams = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log}
    try:
        # An earlier attempt that failed keeps the name; --collect would free it, but Ubuntu 16.04's systemd does not know it.
        subprocess.call(root + ["systemctl", "reset-failed", unit + ".service"], **streams)
        return subprocess.call(root + words + argv, **streams) == 0
    except OSError:  # No such program.
        return False
