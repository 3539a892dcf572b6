"""End every process of a run on this host and print which are left.

A process belongs to a run when MICROCLUSTER_RUN in its environment says so, or when it runs in the run's container, which
serves nothing else but tools that say so themselves (MICROCLUSTER_TOOL). It is signalled only while it still is the process
that was found (same start time), and never by its name. Arguments: the runs' folder or `-`, "only" or "all-but", the run's id, the
container's name where there is one, and the one role whose processes get TERM and no KILL, where another role's come later.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time

RUN_VARIABLE, TOOL_VARIABLE, ROLE_VARIABLE = "MICROCLUSTER_RUN", "MICROCLUSTER_TOOL", "MICROCLUSTER_ROLE"
NO_CONTAINER, NO_RUNS = "", "-"
STAGING_LABEL = "microcluster.staging"
"""Of the container in which a run's data are made; its value is the run."""
TERM_WAIT_S = 15
KILL_WAIT_S = 5
ROLE_WAIT_S = 5
"""What does not end by then gets its KILL with all others."""
EXEC_LOOKS, EXEC_PAUSE_S = 9, 0.002
DOCKER_TIMEOUT_S = 5
MARK_TIMEOUT_S = 3
FLUSH_TIMEOUT_S = 8
NOT_FOUND, TOO_SLOW = 127, 124
ABSENT = "no such container"
DAEMON_FILE, DOCKER_FOLDER = "/etc/docker/daemon.json", "/var/lib/docker"
CONTAINERS = 'for file in "$0"/containers/*/config.v2.json; do cat "$file" && echo || exit 1; done'
"""Prints one line of JSON for each container; without any of them it fails, as where the folder is another one."""
STOP_FILE = "stopped"
"""In the run's folder: it is to end, or was ended; a program may look for it and end by itself."""
STOPPED = '[ ! -d "$0" ] || [ -e "$0/exit_code" ] || : > "$0/{}"'.format(STOP_FILE)


def start_time(pid):
    with open("/proc/" + pid + "/stat", "rb") as file:
        fields = file.read().rpartition(b")")[2].split()
    return fields[19], fields[0]


def environment(pid):
    """Return the words of a process's environment; one that is just starting another program shows none for a moment."""
    for look in range(EXEC_LOOKS):
        with open("/proc/" + pid + "/environ", "rb") as file:
            words = file.read().split(b"\0")
        if words != [b""] or not has_memory(pid):
            break
        time.sleep(EXEC_PAUSE_S * 2**look)  # On a busy machine it may have to wait for its turn in the middle of that.
    return words


def has_memory(pid):
    """Return whether it is neither one of the kernel's own nor a zombie: these never show an environment."""
    with open("/proc/" + pid + "/statm") as file:
        return not file.read().startswith("0 ")


def is_copy(pid):
    """Return whether it is a child of ours that has not begun its own program yet: until then it shows our words and environment."""
    with open("/proc/" + pid + "/stat", "rb") as stat, open("/proc/" + pid + "/cmdline", "rb") as words:
        parent = int(stat.read().rpartition(b")")[2].split()[1])
        if parent != os.getpid():
            return False
        with open("/proc/self/cmdline", "rb") as ours:
            return words.read() == ours.read()


def find(mode, run, container=None, role=""):
    """Return {(pid, start time): run} of the living processes that are meant."""
    found = {}
    for pid in os.listdir("/proc"):
        if not pid.isdigit() or int(pid) == os.getpid():
            continue
        try:
            words = environment(pid)
            started, state = start_time(pid)
            inside = container and is_inside(pid, container)
            if is_copy(pid):
                continue
        except OSError:
            continue
        if role and (ROLE_VARIABLE + "=" + role).encode() not in words:
            continue
        marks = [word.split(b"=", 1) for word in words]
        values = [mark[1].decode() for mark in marks if mark[0] == RUN_VARIABLE.encode() and mark[1:]]
        if inside and not values and not any(mark[0] == TOOL_VARIABLE.encode() for mark in marks):
            values = [run]
        if values and state != b"Z" and (values[0] == run) == (mode == "only"):
            found[(int(pid), started)] = values[0]
    return found


def container_of(name):
    """Return a container as (id, number of its first process) or None, and why that is not known, where it is not.

    Where Docker does not answer, its containers run on; what it has written of them stands in its folder.
    """
    argv = ["docker", "inspect", "--type=container", "--format", "{{.Id}} {{.State.Pid}}", name]
    code, output = asked(argv, DOCKER_TIMEOUT_S)
    if code == 0:
        words = output.splitlines()[-1].split()  # A warning may come before.
        return (words[0], int(words[1])), ""
    if code == NOT_FOUND or ABSENT in output.lower():
        return None, ""
    code, written = asked(["sh", "-c", CONTAINERS, docker_folder()], DOCKER_TIMEOUT_S)
    known = [json.loads(line) for line in written.splitlines() if line.startswith("{")] if code == 0 else []
    found = [one for one in known if one["Name"] == "/" + name]
    if found:
        return (found[0]["ID"], found[0]["State"]["Pid"]), ""
    why = "Docker does not answer ({}), so the processes in container {} without the run's mark were not looked at"
    return None, why.format((output.splitlines() or ["exit code " + str(code)])[-1], name)


def docker_folder():
    """Return where Docker keeps what it knows."""
    try:
        with open(DAEMON_FILE) as file:
            return json.load(file).get("data-root", DOCKER_FOLDER)
    except (OSError, ValueError):
        return DOCKER_FOLDER


def asked(argv, timeout_s):
    """Return (exit code, what was printed), TOO_SLOW after the limit; what hangs in the kernel is left behind."""
    options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    try:
        child = subprocess.Popen(argv, **options)
    except FileNotFoundError:
        return NOT_FOUND, ""
    except OSError as error:
        return 1, str(error)
    try:
        out, _ = child.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        child.kill()
        return TOO_SLOW, "no answer after " + str(timeout_s) + " s"
    return child.returncode, out.decode("utf-8", "replace")


def is_inside(pid, container):
    """Return whether a process lies in the container without being its first one, which is its sshd."""
    identity, first = container
    with open("/proc/" + pid + "/cgroup") as file:
        return int(pid) != first and identity in file.read()


def is_killed(pid):
    """Return whether a KILL waits for it already: it hangs in the kernel, mostly on a disk, and no TERM can end it."""
    try:
        with open("/proc/{}/status".format(pid)) as file:
            waiting = next(line for line in file if line.startswith("SigPnd:")).split()[1]
    except OSError:
        return False
    return bool(int(waiting, 16) >> (signal.SIGKILL - 1) & 1)


def send(processes, number):
    for pid, started in processes:
        try:
            if start_time(str(pid))[0] == started:
                os.kill(pid, number)
        except OSError:
            pass  # It has ended meanwhile.


def end(mode, run, container=None, role=""):
    """Send TERM, wait, send KILL, wait, and look again; return what was there and what is left. One role gets no KILL."""

    def look():
        return find(mode, run, container, role)

    def may_end(number):
        # Two looks: what was started while the first listed the processes shows in the second.
        return any(number == signal.SIGKILL or not is_killed(pid) for pid, _ in look() or look())

    there = look()
    for number, wait_s in ((signal.SIGTERM, TERM_WAIT_S), (signal.SIGKILL, KILL_WAIT_S))[: 1 if role else 2]:
        deadline = time.monotonic() + (ROLE_WAIT_S if role else wait_s)
        send(look(), number)
        while may_end(number) and time.monotonic() < deadline:
            time.sleep(0.2)
    return there, look()


def mark_stopped(runs, names):
    """Leave a word for those who ask later, also when the supervisor could not; no disk may keep anybody from ending a run."""
    for name in set(names):
        asked(["sh", "-c", STOPPED, os.path.join(runs, name)], MARK_TIMEOUT_S)


def remove_staging(run):
    """Remove the container in which a run's data are made, which may just be starting; what is left shows in the processes."""
    _, names = asked(["docker", "ps", "-aq", "--filter", "label=" + STAGING_LABEL + "=" + run], DOCKER_TIMEOUT_S)
    if names and re.match(r"[0-9a-f\s]+$", names):
        asked(["docker", "rm", "-f"] + names.split(), DOCKER_TIMEOUT_S)


def flush(folder):
    """Let a drive that all nodes mount have what was written, before anybody takes this machine away."""
    if os.path.islink(folder):
        asked(["sync", "-f", folder], FLUSH_TIMEOUT_S)


def main(runs, mode, run, container=NO_CONTAINER, role=""):
    mark_stopped(runs, find(mode, run).values())
    inside_of, unseen = container_of(container) if container else (None, "")
    ended, left = end(mode, run, inside_of, role)
    if mode == "only" and not role:
        remove_staging(run)
        flush(os.path.join(runs, run, "logdir"))
    print(json.dumps({"ended": len(ended), "left": sorted(pid for pid, _ in left), "unseen": unseen}))


if __name__ == "__main__":
    main(*sys.argv[1:])
