"""The commands of a queue and their answers, for Torque and for Slurm with the Torque wrappers."""

import re
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Tuple

Job = NamedTuple("Job", [("number", str), ("name", str), ("user", str), ("state", str), ("queue", str)])

WAITING, LIVING = "QHW", "QHWRETS"
"""Letters of qstat: queued, held, waiting for a time; and beside these running, exiting, being moved, suspended."""
USER_COLUMN = 15
"""Characters of a user's name that qstat shows."""
LIST, LIST_QUEUES, LIST_NODES, DELETE = ["qstat"], ["qstat", "-q"], ["pbsnodes", "-a"], ["qdel"]
NAME_CLUSTER = ["sh", "-c", "scontrol show config 2>/dev/null || qstat -B -f"]
"""Slurm's commands first: its wrapper of qstat has no `-B`."""
ANSWERS = (0, 15001 & 0xFF)
"""Exit codes with a table, or with nothing to show, as which Slurm's qstat ends after `-q` too; with 8 it ends where nobody answers."""


def submit(request: Dict[str, Any], script: str, log: str) -> List[str]:
    """Return the words that submit a script; all of `-l` stands in one, because of several only the last counts.

    `-r n`: Torque and Slurm may otherwise begin a job anew by themselves, after a node was lost for example.
    """
    wanted = "nodes={nodes}:ppn={processors},walltime={walltime}".format(**request)
    where = ["-N", request["name"], "-q", request["queue"], "-l", wanted]
    return ["qsub"] + where + ["-r", "n", "-j", "oe", "-o", log, script]


def submitted(output: str) -> List[str]:
    """Return the number in what qsub printed, in a list that is empty without one: an unknown queue is named on the same stream."""
    return re.findall(r"^(\d+)(?:\.[A-Za-z0-9._-]+)?\s*$", output, re.M)[-1:]


def jobs(text: str) -> List[Job]:
    """Return the jobs in the table of qstat, in its order, which is that of their submission."""
    # Torque's server has its name behind the number.
    return [
        Job(number.partition(".")[0], name, user, state, queue)
        for number, name, *_, user, _, state, queue in rows(text)
    ]


def cluster(text: str) -> str:
    """Return the name of Slurm's cluster in its configuration, or of Torque's or PBS's server; an empty text without one."""
    return "".join(re.findall(r"^(?:ClusterName *=|Server:) *(\S+)", text, re.M)[:1])


def living(jobs: Iterable[Job], user: str) -> List[Job]:
    """Return the jobs of a user that are not over."""
    return [job for job in jobs if job.state in LIVING and job.user in (user, user[:USER_COLUMN])]


def queues(text: str) -> Dict[str, Tuple[Optional[int], Optional[int]]]:
    """Return {queue: (its longest walltime in seconds, its most nodes)} of `qstat -q`, None for what it does not limit."""
    return dict((row[0], (seconds(row[3]), int(row[4]) if row[4].isdigit() else None)) for row in rows(text))


def nodes(text: str) -> List[int]:
    """Return the processors of each node of `pbsnodes -a`, 0 for one that is not up; below its name are lines of `key = value`."""
    found = []
    for block in filter(None, re.split(r"\n\s*\n", text.strip())):
        values = dict(re.findall(r"^\s+(\w+) *= *(.*)$", block, re.M))
        is_up = not re.search("down|offline|unknown", values.get("state", "unknown"))
        found.append(int(values.get("np") or values.get("pcpus") or 0) if is_up else 0)
    return found


def seconds(walltime: str) -> Optional[int]:
    """Return the seconds of [DD:]HH:MM:SS or of Slurm's D-HH:MM:SS, None for `--`."""
    found = re.match(r"(?:(\d+)[-:])?(\d+):(\d+):(\d+)$", walltime)
    if not found:
        return None
    days, hours, minutes, rest = [int(part or 0) for part in found.groups()]
    return ((days * 24 + hours) * 60 + minutes) * 60 + rest


def rows(text: str) -> List[List[str]]:
    """Return the words of each row of a table, whose head ends with a line of dashes; fewer words are a sum."""
    below = re.split(r"^-{3,}[ -]*$", text, maxsplit=1, flags=re.M)[1:]
    found = [line.split() for part in below for line in part.split("\n")]
    return [row for row in found if len(row) >= 6]
