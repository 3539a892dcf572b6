"""Run one rank, note on its node how it ended, and end what it leaves behind.

What starts the ranks may crash over the death of one, or end all of them without a number; then only these words name it. What a rank
leaves behind would hold its output open, and may bear no mark of the run any more: all of it belongs to this process, which outlives it.
Arguments: the file of the words, the rank's command.
"""

import contextlib
import ctypes
import json
import os
import resource
import signal
import subprocess
import time
from typing import Any, Sequence

from agent import kill_run
from agent.nodes.node_facts import name_cards

RANK_VARIABLES = ("OMPI_COMM_WORLD_RANK", "RANK")
"""Of mpirun and of torchrun."""
NAME_VARIABLE = "MICROCLUSTER_PROCESS"
"""Of a process that has a name and no rank that is known before it starts."""
PR_SET_PDEATHSIG = 1
"""Of prctl: the signal that a process gets when its parent dies."""
PR_SET_CHILD_SUBREAPER = 36
"""Option of prctl: orphans below this process become its children, however they have tried to become somebody else's."""
GRACE_S = 5
"""Grace time of the processes that a rank has left behind, which may still write."""


def run(words_file: str, argv: Sequence[str]) -> int:
    """Run the rank to its end and end as it did, for mpirun to see.

    The rank's parent is a keeper below this process, because mpirun kills this one a second after it has asked it to end.
    """
    keeper = os.fork()
    if keeper:
        signal.signal(signal.SIGTERM, lambda number, frame: os.kill(keeper, number))
        code = wait(keeper)
    else:
        code = keep(words_file, argv)
    if code < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # The rank's own core is the one worth its disk.
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


def keep(words_file: str, argv: Sequence[str]) -> int:
    """Run the rank, end what it leaves behind, and return how it ended; one that was asked to end leaves a word if it ends well.

    Some releases of Open MPI signal the wrapper alone, so that TERM is passed on, and the rank does not outlive it.
    """
    libc, asked, ranks = ctypes.CDLL(None), [], []

    def pass_on(number: int, frame: Any) -> None:
        for rank in [] if asked else ranks:
            os.kill(rank.pid, number)
        asked.append(number)

    def die_with_parent() -> None:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)

    def alone(number: int, frame: Any) -> None:
        end_what_is_left(0)
        os._exit(1)

    os.setsid()  # What kills the wrapper with its group must not kill this process.
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1)
    signal.signal(signal.SIGHUP, alone)
    signal.signal(signal.SIGTERM, pass_on)
    wrapper = os.getppid()
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGHUP)
    if wrapper != os.getppid():
        os._exit(1)
    ranks.append(subprocess.Popen(argv, preexec_fn=die_with_parent))  # noqa: PLW1509 - there are no threads here
    if asked:  # While the rank was being started.
        os.kill(ranks[0].pid, asked[0])
    code = wait(ranks[0].pid)
    ranks.clear()
    if bool(code) != bool(asked):
        leave(words_file, code, asked)
    end_what_is_left(GRACE_S)
    return code


def wait(wanted: int) -> int:
    """Return the exit code of a child, or its signal as a negative number; bury every other that ends meanwhile."""
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == wanted:
            return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def end_what_is_left(grace_s: float) -> None:
    """Let what the rank has left behind end by itself, then kill it."""
    deadline = time.monotonic() + grace_s
    with contextlib.suppress(ChildProcessError):  # There is no child any more.
        while True:
            if os.waitpid(-1, os.WNOHANG) != (0, 0):
                continue
            if time.monotonic() >= deadline:
                for pid in kill_run.below(kill_run.parents(), os.getpid()):
                    with contextlib.suppress(OSError):
                        os.kill(pid, signal.SIGKILL)
            time.sleep(0.05)


def leave(words_file: str, code: int, asked: Sequence[int]) -> None:
    """Add a line, whole among those of the other ranks of this machine; no disk may change how the rank has ended."""
    how = {"told": asked[0]} if asked else {"exit_code": code} if code > 0 else {"signal": -code}
    rank = next((int(os.environ[name]) for name in RANK_VARIABLES if name in os.environ), None)
    who = {"process": os.environ[NAME_VARIABLE]} if rank is None else {"rank": rank}
    word = dict(how, t=time.time(), **who)
    with contextlib.suppress(OSError), open(words_file, "a") as file:
        file.write(json.dumps(word) + "\n")


def main(words_file: str, *argv: str) -> int:
    name_cards(os.environ)
    return run(words_file, argv)
