"""Run one rank and note on its node how it ended.

What starts the ranks may crash over the death of one, or end all of them without a number; then only these words name it. Arguments: the
file of the words, the rank's command.
"""

import contextlib
import ctypes
import json
import os
import resource
import signal
import subprocess
import time

RANK_VARIABLES = ("OMPI_COMM_WORLD_RANK", "RANK")
"""Of mpirun and of torchrun."""
NAME_VARIABLE = "MICROCLUSTER_PROCESS"
"""Of a process that has a name and no rank that is known before it starts."""
PR_SET_PDEATHSIG = 1
"""Of prctl: the signal that a process gets when its parent dies."""


def run(words_file, argv):
    """Run the rank to its end and end as it did, for mpirun to see; one that was asked to end leaves a word if it ends well.

    Some releases of Open MPI signal the wrapper alone, so that it passes TERM on, and the rank does not outlive it.
    """
    libc, asked, ranks = ctypes.CDLL(None), [], []

    def pass_on(number, frame):
        asked.append(number)
        for rank in ranks:
            rank.send_signal(number)

    def die_with_parent():
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)

    signal.signal(signal.SIGTERM, pass_on)
    ranks.append(subprocess.Popen(argv, preexec_fn=die_with_parent))  # noqa: PLW1509 - there are no threads here
    if asked:  # While the rank was being started.
        ranks[0].send_signal(asked[0])
    code = ranks[0].wait()
    if bool(code) != bool(asked):
        leave(words_file, code, asked)
    if code < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # The rank's own core is the one worth its disk.
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


def leave(words_file, code, asked):
    """Add a line, whole among those of the other ranks of this machine; no disk may change how the rank has ended."""
    how = {"told": asked[0]} if asked else {"exit_code": code} if code > 0 else {"signal": -code}
    rank = next((int(os.environ[name]) for name in RANK_VARIABLES if name in os.environ), None)
    who = {"process": os.environ[NAME_VARIABLE]} if rank is None else {"rank": rank}
    word = dict(how, t=time.time(), **who)
    with contextlib.suppress(OSError), open(words_file, "a") as file:
        file.write(json.dumps(word) + "\n")


def main(words_file, *argv):
    return run(words_file, argv)
