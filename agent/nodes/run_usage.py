"""Usage of a run's processes on this machine, as one line of JSON: [[number, start time, bytes read and written, ticks], ...].

Argument: the run's id. Two readings say whether anything moved in between.
"""

import contextlib
import json
from typing import Dict, Mapping, NamedTuple, Tuple

from agent import kill_run

Usage = NamedTuple("Usage", [("bytes", int), ("ticks", int)])
"""Bytes read and written, and ticks of a processor."""
Process = Tuple[str, int, str]
"""Address of its machine, number and start time."""


def usage(run: str, address: str) -> Dict[Process, Usage]:
    """Return {process: usage} of the run's processes on this machine, which has the address."""
    found = {}
    for process in kill_run.find("only", run):
        with contextlib.suppress(OSError):  # It has ended meanwhile.
            key = address, process.pid, process.started.decode()
            found[key] = Usage(bytes_of(process.pid), ticks_of(process.pid))
    return found


def answered(address: str, code: int, output: str) -> Dict[Process, Usage]:
    """Return {process: usage} of another machine by the exit code and the output of this program there; nothing where it did not answer."""
    try:
        rows = json.loads(output.splitlines()[-1]) if not code else []  # ssh may say something before.
        return dict(((address, int(pid), str(since)), Usage(int(size), int(ticks))) for pid, since, size, ticks in rows)
    except (ValueError, TypeError, IndexError):
        return {}


def bytes_of(pid: int) -> int:
    """Return what a process has read and written; nothing where the kernel does not count it, whose processor time has to do."""
    try:
        with open("/proc/{}/io".format(pid)) as file:
            numbers = dict(line.split(": ") for line in file.read().splitlines())
    except OSError:
        return 0
    return int(numbers["rchar"]) + int(numbers["wchar"])


def ticks_of(pid: int) -> int:
    fields = kill_run.stat(str(pid))
    return int(fields[11]) + int(fields[12])


def growth(before: Mapping[Process, Usage], now: Mapping[Process, Usage]) -> Usage:
    """Return by how much bytes and ticks have grown, all processes together; those that have ended count no more."""
    pairs = [(now[process], before.get(process, Usage(0, 0))) for process in now]
    grown = [(after.bytes - earlier.bytes, after.ticks - earlier.ticks) for after, earlier in pairs]
    return Usage(*map(sum, zip(*grown))) if grown else Usage(0, 0)


def main(run: str) -> None:
    print(json.dumps([[pid, since] + list(used) for (_, pid, since), used in usage(run, "").items()]))
