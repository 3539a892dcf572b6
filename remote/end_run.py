"""Ends every process of a run on this host and prints what is left; Python 3.5, it travels on standard input.

A process belongs to a run when MICROCLUSTER_RUN in its environment says so; it is signalled only while it still is the
process that was found (same start time). Arguments: the runs' folder, "only" or "all-but", the run's id.
"""

import json
import os
import signal
import sys
import time

VARIABLE = b"MICROCLUSTER_RUN="
TERM_WAIT_S = 15
KILL_WAIT_S = 5


def start_time(pid):
    with open("/proc/" + pid + "/stat", "rb") as file:
        fields = file.read().rpartition(b")")[2].split()
    return fields[19], fields[0]


def find(mode, run):
    """Return {(pid, start time): run} of the living processes that are meant."""
    found = {}
    for pid in os.listdir("/proc"):
        if not pid.isdigit() or int(pid) == os.getpid():
            continue
        try:
            with open("/proc/" + pid + "/environ", "rb") as file:
                values = [
                    word[len(VARIABLE) :].decode() for word in file.read().split(b"\0") if word.startswith(VARIABLE)
                ]
            started, state = start_time(pid)
        except OSError:
            continue
        if values and state != b"Z" and (values[0] == run) == (mode == "only"):
            found[(int(pid), started)] = values[0]
    return found


def send(processes, number):
    for pid, started in processes:
        try:
            if start_time(str(pid))[0] == started:
                os.kill(pid, number)
        except OSError:
            pass  # It has ended meanwhile.


def end(mode, run):
    """Send TERM, wait, send KILL, wait, and look again; return what was there and what is left."""
    there = find(mode, run)
    for number, wait_s in ((signal.SIGTERM, TERM_WAIT_S), (signal.SIGKILL, KILL_WAIT_S)):
        deadline = time.time() + wait_s
        send(find(mode, run), number)
        while find(mode, run) and time.time() < deadline:
            time.sleep(0.2)
    return there, find(mode, run)


def mark_stopped(runs, names):
    """Leave a word for those who ask later, also when the supervisor could not."""
    for name in set(names):
        folder = os.path.join(runs, name)
        if os.path.isdir(folder) and not os.path.exists(os.path.join(folder, "exit_code")):
            open(os.path.join(folder, "stopped"), "w").close()


if __name__ == "__main__":
    mark_stopped(sys.argv[1], find(sys.argv[2], sys.argv[3]).values())
    ended, left = end(sys.argv[2], sys.argv[3])
    print(json.dumps({"ended": len(ended), "left": sorted(pid for pid, _ in left)}))
