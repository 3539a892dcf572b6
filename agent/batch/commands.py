"""The commands of a queue and their answers, for Torque and for Slurm with the Torque wrappers; only this module knows which it is."""

import re
from collections import namedtuple

Job = namedtuple("Job", "number name user state queue")
Limits = namedtuple("Limits", "walltime_s nodes")
"""None for what a queue does not limit."""
Node = namedtuple("Node", "name state processors")

WAITING, LIVING = "QHW", "QHWRETS"
"""Letters of qstat: queued, held, waiting for a time; and beside these running, exiting, being moved, suspended."""
USER_COLUMN = 15
"""So many characters of a user's name qstat shows."""
LIST, LIST_QUEUES, LIST_NODES = ["qstat"], ["qstat", "-q"], ["pbsnodes", "-a"]
UNKNOWN_JOB = 15001 & 0xFF
"""With it Slurm's qstat ends where no job is shown, and after `-q`; with 8 where nobody answers."""
UNUSABLE = ("down", "offline", "unknown")
SLURM_JOB = "SLURM_JOB_ID"
EXIT_MARK = "microcluster-step-exit "
CARRIED = ("HOME", "USER", "PATH", "LD_LIBRARY_PATH", "PYTHONPATH", "LANG", "PBS_JOBID", "MICROCLUSTER_RUN")
"""What a step of Torque does not have of the job's environment by itself."""


def number_of(job):
    """Return a job's number: the same with and without the name of Torque's server behind it."""
    return job.strip().partition(".")[0]


def submit(request, script, log):
    """Return the words that submit a script; all of `-l` stands in one, because of several only the last counts.

    `-r n`: Torque and Slurm may otherwise begin a job anew by themselves, after a node was lost for example.
    """
    wanted = "nodes={nodes}:ppn={processors},walltime={walltime}".format(**request)
    where = ["-N", request["name"], "-q", request["queue"], "-l", wanted]
    return ["qsub"] + where + ["-r", "n", "-j", "oe", "-o", log, script]


def delete(number):
    return ["qdel", number]


def submitted(output):
    """Return the number in what qsub printed, or None: an unknown queue is named on the same stream."""
    last = output.split("\n") if output.strip() else [""]
    found = [line.strip() for line in last if re.match(r"\d+(\.[A-Za-z0-9._-]+)?$", line.strip())]
    return number_of(found[-1]) if found else None


def jobs(text):
    """Return the jobs in the table of qstat, in its order, which is that of their submission."""
    found = []
    for line in below_dashes(text):
        words = line.split()
        if len(words) >= 6 and words[0][0].isdigit():
            found.append(Job(number_of(words[0]), words[1], words[-4], words[-2], words[-1]))
    return found


def is_of(job, user):
    """Return whether a job is a user's."""
    return job.user == user or (len(job.user) >= USER_COLUMN and user.startswith(job.user))


def queues(text):
    """Return {queue: Limits} of `qstat -q`."""
    found = {}
    for line in below_dashes(text):
        words = line.split()
        if len(words) >= 6 and not words[0].startswith("-") and not words[0].isdigit():
            found[words[0]] = Limits(seconds(words[3]), int(words[4]) if words[4].isdigit() else None)
    return found


def nodes(text):
    """Return the nodes of `pbsnodes -a`: a name in the first column, and below it lines of `key = value`."""
    found = []
    for block in re.split(r"\n\s*\n", text):
        lines = [line for line in block.split("\n") if line.strip()]
        if not lines or lines[0][0].isspace():
            continue
        pairs = [line.split("=", 1) for line in lines[1:] if "=" in line]
        values = dict((key.strip(), value.strip()) for key, value in pairs)
        processors = values.get("np") or values.get("pcpus") or "0"
        found.append(Node(lines[0].strip(), values.get("state", ""), int(processors) if processors.isdigit() else 0))
    return found


def usable(node):
    return not any(word in node.state for word in UNUSABLE)


def seconds(walltime):
    """Return the seconds of [DD:]HH:MM:SS or of Slurm's D-HH:MM:SS, None for `--`."""
    days, dash, rest = walltime.rpartition("-")
    parts = rest.split(":")
    if not all(part.isdigit() for part in parts) or (dash and not days.isdigit()):
        return None
    total = 0
    for part, unit in zip(reversed(parts), (1, 60, 3600, 86400)):
        total += int(part) * unit
    return total + (int(days) * 86400 if dash else 0)


def is_answer(code):
    """Return whether a command has answered, with a table or with nothing to show."""
    return code in (0, UNKNOWN_JOB)


def below_dashes(text):
    """Return the lines below the line of dashes that ends a table's head."""
    lines = text.split("\n")
    heads = [number for number, line in enumerate(lines) if re.match(r"-{3,}[ -]*$", line)]
    return lines[heads[0] + 1 :] if heads else []


def granted(text):
    """Return the names in a node file, each once, in its order."""
    names = []
    for name in text.split():
        if name not in names:
            names.append(name)
    return names


def step(environment, node, line):
    """Return the words that run a line of shell on a granted node as a step of the job, so that qdel ends it too."""
    if SLURM_JOB in environment:
        where = ["--jobid", environment[SLURM_JOB], "--nodes=1", "--ntasks=1", "--nodelist", node]
        return ["srun", "--quiet", "--overlap", "--export=ALL"] + where + ["sh", "-c", line]
    # Torque's command hands neither environment nor exit code on.
    carried = ["{}={}".format(name, environment[name]) for name in CARRIED if name in environment]
    noted = line + "\necho '" + EXIT_MARK + "'$?"
    return ["pbsdsh", "-o", "-h", node, "/usr/bin/env"] + carried + ["/bin/sh", "-c", noted]


def notes_its_exit(environment):
    """Return whether a step prints its exit code as its last line, instead of ending with it."""
    return SLURM_JOB not in environment
