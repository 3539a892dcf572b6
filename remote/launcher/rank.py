"""Runs one rank and leaves a word on its machine of how it ended; Python 3.5, it travels to every machine.

mpirun says which rank has died, but at times crashes over that itself; then only these words name the machine. Arguments: the
file of the words, the rank's command.
"""

import json
import os
import resource
import signal
import subprocess
import sys
import time


def run(words_file, argv):
    """Run the rank to its end and end as it did, for mpirun to see; a rank that was asked to end leaves no word."""
    asked = []
    signal.signal(
        signal.SIGTERM, lambda number, frame: asked.append(number)
    )  # The whole group got it, the rank as well.
    code = subprocess.Popen(argv).wait()
    if code and not asked:
        leave(words_file, code)
    if code < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # The rank's own core is the one worth its disk.
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


def leave(words_file, code):
    """Add a line, whole among those of the other ranks of this machine."""
    how = {"exit_code": code} if code > 0 else {"signal": -code}
    word = dict(how, rank=int(os.environ["OMPI_COMM_WORLD_RANK"]), t=time.time())
    with open(words_file, "a") as file:
        file.write(json.dumps(word) + "\n")


if __name__ == "__main__":
    sys.exit(run(sys.argv[1], sys.argv[2:]))
