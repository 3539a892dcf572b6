"""End every process of a run on this host and print which are left.

A process belongs to a run when MICROCLUSTER_RUN in its environment says so, when a process of the run has started it, or when it runs in
the run's container, which serves nothing else but tools that say so themselves (MICROCLUSTER_TOOL). A process that gives itself another
name writes over its environment, so that only the one that started it shows whose it is. It is signalled only while it still is the
process that was found (same start time), and never by its name. Arguments: the runs' folder or `-`, "only" or "all-but", the run's id, the
container's name where there is one, and the one role whose processes get TERM and no KILL, where another role's come later.
"""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Sequence, Set, Tuple

RUN_VARIABLE, TOOL_VARIABLE, ROLE_VARIABLE = "MICROCLUSTER_RUN", "MICROCLUSTER_TOOL", "MICROCLUSTER_ROLE"
NO_CONTAINER, NO_RUNS, SPOILT = "", "-", ("utf-8", "replace")
STAGING_LABEL = "microcluster.staging"
"""Label of the container in which a run's data are made; its value is the run."""
TERM_WAIT_S = 15
KILL_WAIT_S = 5
ROLE_WAIT_S = 5
"""Seconds for the processes of one role; those that have not ended then get their KILL with all others."""
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
"""A file in the folder of a run that is to end, or was ended; a program may look for it and end by itself."""
NAME = re.compile(r"\w+\Z")
"""Name of a run; processes say themselves to which one they belong, and a mark must lead to no other folder."""
STOPPED = '[ ! -d "$0" ] || [ -e "$0/exit_code" ] || : > "$0/{}"'.format(STOP_FILE)
Process = NamedTuple("Process", [("pid", int), ("started", bytes)])
"""The start time tells it from a later one with its number."""
Mark = NamedTuple("Mark", [("run", str), ("role", str)])
"""Run and role in a process's environment; the role is empty for a process without one."""
Container = NamedTuple("Container", [("id", str), ("pid", int)])
"""The number is that of its first process."""


def start_time(pid: str) -> Tuple[bytes, bytes]:
    """Return when a process was started, and its state."""
    fields = stat(pid)
    return fields[19], fields[0]


def stat(pid: str) -> List[bytes]:
    """Return what /proc says of a process behind its name: state, parent and so on."""
    with open("/proc/" + pid + "/stat", "rb") as file:
        return file.read().rpartition(b")")[2].split()


def parents() -> Dict[int, int]:
    """Return {pid: that of its parent} of all processes."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            found[int(pid)] = int(stat(pid)[1])
    return found


def below(parent_of: Dict[int, int], root: int) -> Set[int]:
    """Return every process that a process has started, and what those have started."""
    found, new = set(), {root}
    while new:
        new = set(pid for pid, parent in parent_of.items() if parent in new) - found
        found |= new
    return found


def environment(pid: str) -> List[bytes]:
    """Return the words of a process's environment; one that is just starting another program shows none for a moment."""
    for look in range(EXEC_LOOKS):
        with open("/proc/" + pid + "/environ", "rb") as file:
            words = file.read().split(b"\0")
        if words != [b""] or not has_memory(pid):
            break
        time.sleep(EXEC_PAUSE_S * 2**look)  # On a busy machine it may have to wait for its turn in the middle of that.
    return words


def has_memory(pid: str) -> bool:
    """Return whether it is neither one of the kernel's own nor a zombie: these never show an environment."""
    with open("/proc/" + pid + "/statm") as file:
        return not file.read().startswith("0 ")


def is_copy(pid: str) -> bool:
    """Return whether it is a child of ours that has not begun its own program yet: until then it shows our words and environment."""
    with open("/proc/" + pid + "/cmdline", "rb") as words:
        if int(stat(pid)[1]) != os.getpid():
            return False
        with open("/proc/self/cmdline", "rb") as ours:
            return words.read() == ours.read()


def find(mode: str, run: str, container: Optional[Container] = None, role: str = "") -> Dict[Process, str]:
    """Return {(pid, start time): run} of the living processes that are meant."""
    started, marks, parent_of = {}, {}, parents()
    for pid in parent_of:
        try:
            words = environment(str(pid))
            since, state = start_time(str(pid))
            inside = container and is_inside(str(pid), container)
            if pid == os.getpid() or is_copy(str(pid)):
                marks[pid] = None
                continue
        except OSError:
            continue
        values = dict(word.split(b"=", 1) for word in words if b"=" in word)
        if state != b"Z":
            started[pid] = since
        if RUN_VARIABLE.encode() in values:
            marks[pid] = Mark(
                values[RUN_VARIABLE.encode()].decode(*SPOILT),
                values.get(ROLE_VARIABLE.encode(), b"").decode(*SPOILT),
            )
        elif inside:
            marks[pid] = None if TOOL_VARIABLE.encode() in values else Mark(run, "")
    found = {}
    for pid, since in started.items():
        owner = pid
        while owner in parent_of and owner not in marks:
            owner = parent_of[owner]
        mark = marks.get(owner)
        if mark and (mark.run == run) == (mode == "only") and role in ("", mark.role):
            found[Process(pid, since)] = mark.run
    return found


def container_of(name: str) -> Tuple[Optional[Container], str]:
    """Return a container or None, and why that is not known, where it is not.

    Where Docker does not answer, its containers run on; what it has written of them stands in its folder.
    """
    argv = ["docker", "inspect", "--type=container", "--format", "{{.Id}} {{.State.Pid}}", name]
    code, output = asked(argv, DOCKER_TIMEOUT_S)
    if code == 0:
        words = output.splitlines()[-1].split()  # A warning may come before.
        return Container(words[0], int(words[1])), ""
    if code == NOT_FOUND or ABSENT in output.lower():
        return None, ""
    code, written = asked(["sh", "-c", CONTAINERS, docker_folder()], DOCKER_TIMEOUT_S)
    known = [json.loads(line) for line in written.splitlines() if line.startswith("{")] if code == 0 else []
    found = [one for one in known if one["Name"] == "/" + name]
    if found:
        return Container(found[0]["ID"], found[0]["State"]["Pid"]), ""
    why = "Docker does not answer ({}), so the processes in container {} without the run's mark were not looked at"
    return None, why.format(last_line(code, output), name)


def docker_folder() -> str:
    """Return where Docker keeps what it knows."""
    try:
        with open(DAEMON_FILE) as file:
            return json.load(file).get("data-root", DOCKER_FOLDER)
    except (OSError, ValueError):
        return DOCKER_FOLDER


def asked(argv: Sequence[str], timeout_s: float, **options: Any) -> Tuple[int, str]:
    """Do the same as :func:`ask`, where a program that cannot be started is an answer too."""
    try:
        return ask(argv, timeout_s, **options)
    except FileNotFoundError:
        return NOT_FOUND, ""
    except OSError as error:
        return 1, str(error)


def ask(argv: Sequence[str], timeout_s: float, given: bytes = b"", **options: Any) -> Tuple[int, str]:
    """Return (exit code, what was printed), TOO_SLOW after the limit; what hangs in the kernel is left behind."""
    child = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
    try:
        out, _ = child.communicate(given, timeout_s)
    except subprocess.TimeoutExpired:
        child.kill()
        return TOO_SLOW, "no answer after " + str(timeout_s) + " s"
    return child.returncode, out.decode("utf-8", "replace")


def last_line(code: int, output: str) -> str:
    """Return what a command has said last, or else how it has ended."""
    return (output.splitlines() or ["exit code " + str(code)])[-1]


def is_inside(pid: str, container: Container) -> bool:
    """Return whether a process lies in the container without being its first one, which is its sshd."""
    with open("/proc/" + pid + "/cgroup") as file:
        return int(pid) != container.pid and container.id in file.read()


def is_still(pid: int, started: bytes) -> bool:
    """Return whether a process lives and is the one that was started then."""
    try:
        since, state = start_time(str(pid))
    except OSError:
        return False
    return since == started and state != b"Z"


def send(processes: Iterable[Process], number: int) -> None:
    for pid, started in processes:
        if is_still(pid, started):
            with contextlib.suppress(OSError):  # It has ended meanwhile.
                os.kill(pid, number)


def end(
    mode: str, run: str, container: Optional[Container] = None, role: str = ""
) -> Tuple[Dict[Process, str], Dict[Process, str]]:
    """Send TERM, wait, send KILL, wait, and look again; return what was there and what is left. One role gets no KILL."""

    known = {}

    def look() -> Dict[Process, str]:
        # Of a process whose parent has ended meanwhile nothing else may show whose it is.
        known.update(find(mode, run, container, role))
        return dict((process, known[process]) for process in known if is_still(*process))

    there = look()
    for number, wait_s in ((signal.SIGTERM, TERM_WAIT_S), (signal.SIGKILL, KILL_WAIT_S))[: 1 if role else 2]:
        deadline = time.monotonic() + (ROLE_WAIT_S if role else wait_s)
        send(look(), number)
        # Two looks: what was started while the first listed the processes shows in the second.
        while (look() or look()) and time.monotonic() < deadline:
            time.sleep(0.2)
    return there, look()


def end_here(run: str, role: str = "") -> str:
    """End a run's processes on this machine, for one of them or its job; return why they are not known to have ended, or an empty text."""
    _, left = end("only", run, role=role)
    return still_there(sorted(pid for pid, _ in left))


def unproved(code: int, output: str) -> str:
    """Return the same by the exit code and the output of this program on another machine."""
    last = last_line(code, output)
    if code or not last.startswith("{"):
        return "no answer: " + last[-300:]
    return still_there(json.loads(last)["left"])


def still_there(pids: Sequence[int]) -> str:
    return "processes {} would not end".format(pids) if pids else ""


def mark_stopped(runs: str, names: Iterable[str]) -> None:
    """Leave a word for those who ask later, also when the supervisor could not; no disk may keep anybody from ending a run."""
    for name in filter(NAME.match, set(names)):
        asked(["sh", "-c", STOPPED, os.path.join(runs, name)], MARK_TIMEOUT_S)


def remove_staging(run: str = "", timeout_s: float = DOCKER_TIMEOUT_S) -> None:
    """Remove the container in which a run's data are made, or any run's; it may just be starting, and what is left shows in the processes."""
    label = STAGING_LABEL + ("=" + run if run else "")
    _, names = asked(["docker", "ps", "-aq", "--filter", "label=" + label], timeout_s)
    if names and re.match(r"[0-9a-f\s]+$", names):
        asked(["docker", "rm", "-f"] + names.split(), timeout_s)


def flush(folder: str) -> None:
    """Let a drive that all nodes mount have what was written, before anybody takes this machine away."""
    if os.path.islink(folder):
        asked(["sync", "-f", folder], FLUSH_TIMEOUT_S)


def main(runs: str, mode: str, run: str, container: str = NO_CONTAINER, role: str = "") -> None:
    mark_stopped(runs, find(mode, run).values())
    inside_of, unseen = container_of(container) if container else (None, "")
    ended, left = end(mode, run, inside_of, role)
    if mode == "only" and not role:
        remove_staging(run)
        flush(os.path.join(runs, run, "logdir"))
    print(json.dumps({"ended": len(ended), "left": sorted(pid for pid, _ in left), "unseen": unseen}))


if __name__ == "__main__":
    main(*sys.argv[1:])
