"""Run the processes of a run on their nodes, and end all of them when the run ends."""

import functools
import json
import queue
import subprocess
import threading

from agent import kill_run, rank_wrapper, spec
from agent.parallel import parallel

LINE_BYTES = 1 << 20
"""A longer line is read in pieces: output without line ends must not fill the memory."""
WAITING_LINES = 1000
END_TIMEOUT_S = 30
LAST_LINES_TIMEOUT_S = 15
"""For the output of processes that were ended; on a disk that hangs none may come."""


def run_all(run, processes, each_line):
    """Run ``processes`` on their nodes, into job.log; return the exit code and the process that decided it.

    The run ends when any process fails, or when all with ``ends_run`` have ended; what still runs then is ended.
    """
    output = queue.Queue(WAITING_LINES)
    ordered, children = sorted(processes, key=lambda process: process.order), []
    try:
        for number, process in enumerate(ordered):
            children.append(start(run, process))
            args = (number, children[number], output, tag_of(process))
            threading.Thread(target=follow, args=args, daemon=True).start()
        code, last = 0, ordered[0]
        running, needed = set(range(len(ordered))), set(n for n, one in enumerate(ordered) if one.ends_run)
        while running & needed and not code:
            number, code = next_end(run, output, each_line)
            running.discard(number)
            last = ordered[number]
        if running:
            end_all(run)
        while running:
            running.discard(next_end(run, output, each_line, LAST_LINES_TIMEOUT_S)[0])
        return code, last
    except queue.Empty:
        return code, last
    finally:
        for child in children:
            if child.poll() is None:
                child.terminate()


def start(run, process):
    """Start a process on its node, with what is known only now in its argv."""
    values = dict(process.environment, **{kill_run.ROLE_VARIABLE: process.role})
    if process.name:
        values[rank_wrapper.NAME_VARIABLE] = process.name
    environment = ["{}={}".format(*pair) for pair in sorted(values.items())]
    argv = [filled(word, run) for word in process.argv]
    argv = run.on_node(run.spec.addresses[process.node], ["env"] + environment + argv)
    options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    return subprocess.Popen(argv, **options)


def filled(word, run):
    """Return a word of an argv with the checkpoint that is gone on from and its step, and with the name of this attempt."""
    known = {spec.CHECKPOINT: run.resumed_from or "", spec.STEP: str(run.resumed or 0), spec.ATTEMPT: run.attempt}
    for placeholder, value in sorted(known.items()):
        word = word.replace(placeholder, value)
    return word


def tag_of(process):
    """Return what stands in front of each line of a process that has a name."""
    return "[{}] ".format(process.name).encode() if process.name else b""


def follow(number, child, output, tag=b""):
    """Put every line of a child, with its tag, and at last its exit code into the queue."""
    for line in iter(lambda: child.stdout.readline(LINE_BYTES), b""):
        output.put((number, tag + line))
    output.put((number, child.wait()))


def next_end(run, output, each_line, timeout_s=None):
    """Handle the lines of all processes until one ends; return its number and exit code."""
    while True:
        number, found = output.get(timeout=timeout_s)
        if isinstance(found, int):
            return number, found
        run.log.write(found)
        each_line(found.decode("utf-8", "replace").rstrip("\r\n"))


def end_all(run):
    """End every process of the run on every node, role by role; what cannot be proved is written down and left to `fab stop`."""
    addresses = run.spec.addresses
    for role in run.spec.stop_order[:-1]:
        parallel(functools.partial(end_on, run, role=role), addresses)
    for address, why in zip(addresses, parallel(functools.partial(end_on, run), addresses)):
        if why:
            run.emit({"event": "not-ended", "node": run.name_of(address), "text": why})


def end_on(run, address, role=""):
    """End the processes of a role, or all of them; return why they are not known to have ended, or an empty text."""
    if address == run.spec.addresses[0]:  # In this process, which bears the run's mark too and has to go on.
        _, left = kill_run.end("only", run.spec.run, role=role)
        return still_there(sorted(pid for pid, _ in left))
    words = [kill_run.NO_CONTAINER, role] if role else []
    code, output = run.ask(run.spec.end + words, END_TIMEOUT_S, address, marked=False)
    last = (output.splitlines() or ["exit code " + str(code)])[-1]
    if code or not last.startswith("{"):
        return "no answer: " + last[-300:]
    return still_there(json.loads(last)["left"])


def still_there(pids):
    return "processes {} would not end".format(pids) if pids else ""
