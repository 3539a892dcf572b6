"""Run the processes of a run on their nodes, and end all of them when the run ends."""

import queue
import subprocess
import threading

from agent import kill_run
from agent.parallel import parallel

LINE_BYTES = 1 << 20
"""A longer line is read in pieces: output without line ends must not fill the memory."""
WAITING_LINES = 1000
END_TIMEOUT_S = 30
LAST_LINES_TIMEOUT_S = 60
"""For the output of processes that were ended; on a disk that hangs none may come."""


def run_all(run, processes, each_line):
    """Run ``processes`` in the container of their nodes, into job.log; return the exit code and the process that decided it.

    The run ends when any process fails, or when all with ``ends_run`` have ended; what still runs then is ended.
    """
    output = queue.Queue(WAITING_LINES)
    ordered, children = sorted(processes, key=lambda process: process.order), []
    try:
        for number, process in enumerate(ordered):
            children.append(start(run, process))
            threading.Thread(target=follow, args=(number, children[number], output), daemon=True).start()
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
    """Start a process in the container of its node; from the launcher's container ssh reaches the others."""
    environment = ["{}={}".format(*pair) for pair in sorted(process.environment.items())]
    argv = run.on_node(run.spec.addresses[process.node], ["env"] + environment + process.argv)
    options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    return subprocess.Popen(run.in_container_argv(argv), **options)


def follow(number, child, output):
    """Put every line of a child and at last its exit code into the queue."""
    for line in iter(lambda: child.stdout.readline(LINE_BYTES), b""):
        output.put((number, line))
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
    """End every process of the run that is left on any node; a node that does not answer is left to `fab stop`."""
    kill_run.end("only", run.spec.run)
    others = run.spec.addresses[1:]
    parallel(lambda address: run.ask(run.on_node(address, run.spec.end), END_TIMEOUT_S, marked=False), others)
