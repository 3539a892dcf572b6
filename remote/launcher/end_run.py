"""Ends every process of a run on this host and prints what is left; Python 3.5, it travels on standard input.

A process belongs to a run when MICROCLUSTER_RUN in its environment says so, or when it runs in the run's container, which
serves nothing else but tools that say so themselves (MICROCLUSTER_TOOL). It is signalled only while it still is the process
that was found (same start time), and never by its name. Arguments: the runs' folder, "only" or "all-but", the run's id, and
the container's name where there is one.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time

VARIABLE = b"MICROCLUSTER_RUN="
TOOL = b"MICROCLUSTER_TOOL="
TERM_WAIT_S = 15
KILL_WAIT_S = 5
DOCKER_TIMEOUT_S = 5


def start_time(pid):
    with open("/proc/" + pid + "/stat", "rb") as file:
        fields = file.read().rpartition(b")")[2].split()
    return fields[19], fields[0]


def find(mode, run, container=None):
    """Return {(pid, start time): run} of the living processes that are meant."""
    found = {}
    for pid in os.listdir("/proc"):
        if not pid.isdigit() or int(pid) == os.getpid():
            continue
        try:
            with open("/proc/" + pid + "/environ", "rb") as file:
                words = file.read().split(b"\0")
            started, state = start_time(pid)
            inside = container and is_inside(pid, container)
        except OSError:
            continue
        values = [word[len(VARIABLE) :].decode() for word in words if word.startswith(VARIABLE)]
        if inside and not values and not any(word.startswith(TOOL) for word in words):
            values = [run]
        if values and state != b"Z" and (values[0] == run) == (mode == "only"):
            found[(int(pid), started)] = values[0]
    return found


def container_of(name):
    """Return (id, number of the first process) of a container that runs, or None."""
    argv = ["docker", "inspect", "--format", "{{.Id}} {{.State.Pid}}", name]
    try:
        words = subprocess.check_output(argv, stderr=subprocess.DEVNULL, timeout=DOCKER_TIMEOUT_S).decode().split()
    except (OSError, subprocess.SubprocessError):
        return None  # No Docker or no such container; where Docker hangs, the marks alone have to do.
    return words[0], int(words[1])


def is_inside(pid, container):
    """Return whether a process lies in the container without being its first one, which is its sshd."""
    identity, first = container
    with open("/proc/" + pid + "/cgroup") as file:
        return int(pid) != first and identity in file.read()


def send(processes, number):
    for pid, started in processes:
        try:
            if start_time(str(pid))[0] == started:
                os.kill(pid, number)
        except OSError:
            pass  # It has ended meanwhile.


def end(mode, run, container=None):
    """Send TERM, wait, send KILL, wait, and look again; return what was there and what is left."""
    there = find(mode, run, container)
    for number, wait_s in ((signal.SIGTERM, TERM_WAIT_S), (signal.SIGKILL, KILL_WAIT_S)):
        deadline = time.monotonic() + wait_s
        send(find(mode, run, container), number)
        while find(mode, run, container) and time.monotonic() < deadline:
            time.sleep(0.2)
    return there, find(mode, run, container)


def mark_stopped(runs, names):
    """Leave a word for those who ask later, also when the supervisor could not."""
    for name in set(names):
        folder = os.path.join(runs, name)
        if os.path.isdir(folder) and not os.path.exists(os.path.join(folder, "exit_code")):
            with contextlib.suppress(OSError):  # No disk may keep anybody from ending what costs money.
                open(os.path.join(folder, "stopped"), "w").close()


def remove_staging(run):
    """Remove the container in which a run's data are made, which may just be starting."""
    listing = ["docker", "ps", "-aq", "--filter", "label=microcluster.staging=" + run]
    try:
        names = subprocess.check_output(listing, stderr=subprocess.DEVNULL, timeout=DOCKER_TIMEOUT_S).decode().split()
        if names:
            quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            subprocess.call(["docker", "rm", "-f"] + names, timeout=DOCKER_TIMEOUT_S, **quiet)
    except (OSError, subprocess.SubprocessError):
        pass  # No Docker, or one that hangs: what is left shows in the processes.


if __name__ == "__main__":
    inside_of = container_of(sys.argv[4]) if sys.argv[4:] else None
    mark_stopped(sys.argv[1], find(sys.argv[2], sys.argv[3]).values())
    ended, left = end(sys.argv[2], sys.argv[3], inside_of)
    if sys.argv[2] == "only":
        remove_staging(sys.argv[3])
    print(json.dumps({"ended": len(ended), "left": sorted(pid for pid, _ in left)}))
