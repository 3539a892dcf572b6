"""Run a line of shell on a granted node as a step of the job, as ssh does elsewhere, so that qdel ends it too.

Arguments: the run's folder, the node's address or name, the line.
"""

import os
import subprocess
import sys

from agent.run.queue_nodes import granted

SLURM_JOB = "SLURM_JOB_ID"
EXIT_MARK = "microcluster-step-exit "
CARRIED = ("HOME", "USER", "PATH", "LD_LIBRARY_PATH", "PYTHONPATH", "LANG", "PBS_JOBID", "MICROCLUSTER_RUN")
"""Variables of the job's environment that a step of Torque does not have by itself."""
NO_ANSWER = 255


def main(folder: str, node: str, *line: str) -> int:
    names = dict((address, name) for name, address in granted(folder))
    name, words = names.get(node, node), " ".join(line)
    if SLURM_JOB in os.environ:
        where = ["--jobid", os.environ[SLURM_JOB], "--nodes=1", "--ntasks=1", "--nodelist", name]
        os.execvp("srun", ["srun", "--quiet", "--overlap", "--export=ALL"] + where + ["sh", "-c", words])
    return torque_step(name, words)


def torque_step(node: str, line: str) -> int:
    """Run a step of Torque, which hands neither environment nor exit code on: the last line that it prints names the code."""
    carried = ["{}={}".format(name, os.environ[name]) for name in CARRIED if name in os.environ]
    noted = ["/bin/sh", "-c", line + "\necho '" + EXIT_MARK + "'$?"]
    words, code = ["pbsdsh", "-o", "-h", node, "/usr/bin/env"] + carried + noted, None
    child = subprocess.Popen(words, stdout=subprocess.PIPE)
    for printed in iter(child.stdout.readline, b""):
        before, found, after = printed.partition(EXIT_MARK.encode())
        sys.stdout.buffer.write(before)
        sys.stdout.buffer.flush()
        code = int(after) if found else code
    failed = child.wait()
    return NO_ANSWER if code is None else code or failed
