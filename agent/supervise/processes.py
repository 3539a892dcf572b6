"""Run the processes of a run on their nodes, and end all of them when the run ends."""

import functools
import os
import queue
import subprocess
import threading
from typing import Any, Callable, Optional, Sequence, Tuple

from agent import kill_run
from agent.launch import rank_wrapper
from agent.machine import parallel
from agent.run import document
from agent.run.context import Run
from agent.supervise.output_lines import follow

WAITING_READS = 16
END_TIMEOUT_S = 30
LAST_LINES_TIMEOUT_S = 15
"""Limit for the output of processes that were ended; on a disk that hangs none may come."""


def run_all(
    run: Run, processes: Sequence[document.Process], each_line: Callable[[str], Any]
) -> Tuple[int, document.Process]:
    """Run ``processes`` on their nodes, into job.log; return the exit code and the process that decided it.

    The run ends when any process fails, or when all with ``ends_run`` have ended; what still runs then is ended.
    """
    output, left_open = queue.Queue(WAITING_READS), []
    run.port = run.free_port()
    ordered, children = sorted(processes, key=lambda process: process.order), []
    try:
        for number, process in enumerate(ordered):
            children.append(start(run, process))
            args = (number, children[number], output, tag_of(process), left_open)
            threading.Thread(target=follow, args=args, daemon=True).start()
        code, last = 0, ordered[0]
        running, needed = set(range(len(ordered))), set(n for n, one in enumerate(ordered) if one.ends_run)
        while running & needed and not code:
            number, code = next_end(run, output, each_line)
            running.discard(number)
            last = ordered[number]
        if running or left_open:
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


def start(run: Run, process: document.Process) -> subprocess.Popen:
    """Start a process on its node, with what is known only now in its argv and environment."""
    values = dict(process.environment, **{kill_run.ROLE_VARIABLE: process.role})
    if process.name:
        values[rank_wrapper.NAME_VARIABLE] = process.name
    environment = [filled("{}={}".format(*pair), run) for pair in sorted(values.items())]
    argv = [filled(word, run) for word in process.argv]
    argv = run.on_node(run.spec.machines.addresses[process.node], ["env"] + environment + argv)
    options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    return subprocess.Popen(argv, **options)


def filled(word: str, run: Run) -> str:
    """Return a word with the checkpoint that is gone on from and its step, this attempt's name, and the port where all meet."""
    known = {
        document.CHECKPOINT: run.resumed_from or "",
        document.STEP: str(run.resumed or 0),
        document.ATTEMPT: run.attempt,
    }
    for placeholder, value in sorted(dict(known, **{document.PORT: str(run.port)}).items()):
        word = word.replace(placeholder, value)
    return word


def tag_of(process: document.Process) -> bytes:
    """Return what stands in front of each line of a process that has a name."""
    return "[{}] ".format(process.name).encode() if process.name else b""


def next_end(
    run: Run, output: queue.Queue, each_line: Callable[[str], Any], timeout_s: Optional[float] = None
) -> Tuple[int, int]:
    """Handle the lines of all processes until one ends; return its number and exit code."""
    while True:
        number, found = output.get(timeout=timeout_s)
        if isinstance(found, int):
            return number, found
        run.log.write(b"".join(line for line, for_log in found if for_log))
        for line, _ in found:
            end = "\r" if line.endswith(b"\r") else ""
            each_line(line.decode("utf-8", "replace").rstrip("\r\n") + end)


def end_all(run: Run) -> None:
    """End every process of the run on every node, role by role; what cannot be proved is written down and left to `fab stop`."""
    addresses = run.spec.machines.addresses
    for role in run.spec.program.stop_order[:-1]:
        parallel(functools.partial(end_on, run, role=role), addresses)
    for address, why in zip(addresses, parallel(functools.partial(end_on, run), addresses)):
        if why:
            run.emit({"event": "not-ended", "node": run.name_of(address), "text": why})


def end_on(run: Run, address: str, role: str = "") -> str:
    """End the processes of a role, or all of them; return why they are not known to have ended, or an empty text."""
    if address == run.spec.machines.addresses[0]:  # In this process, which bears the run's mark too and has to go on.
        return kill_run.end_here(run.spec.run, role)
    # In one folder for all nodes the word that it was stopped is the launcher's to leave.
    runs = kill_run.NO_RUNS if run.is_shared else os.path.dirname(run.folder)
    argv = run.program("kill_run", runs, "only", run.spec.run, kill_run.NO_CONTAINER, role)
    return kill_run.unproved(*run.ask(argv, END_TIMEOUT_S, address, marked=False))
