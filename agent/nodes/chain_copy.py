"""Receive a stream and pass it on to the next node while it still comes; runs on every node.

Arguments: the words that take the stream in here, the words of the way to another machine, both as JSON; then the machines that are still
to have it, in their order. So a chain of any length takes hardly longer than one machine. A link that breaks ends the stream for
those behind it and for nobody else; what broke is printed, one line each.
"""

import contextlib
import json
import os
import shlex
import subprocess
import sys
from typing import List, Sequence

MARK = "microcluster-relay "
PIECE = 1 << 18


def start(sink: List[str], way: List[str], machines: Sequence[str]) -> subprocess.Popen:
    """Return the process at the beginning of a chain over ``machines``, to whose standard input the stream goes."""
    argv = ["python3", os.path.abspath(__file__), json.dumps(sink), json.dumps(way)] + list(machines[1:])
    line = " ".join(shlex.quote(word) for word in argv)
    options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    return subprocess.Popen(way + [machines[0], line], **options)


def end(process: subprocess.Popen, machine: str) -> List[List[str]]:
    """Return what broke in the chain that begins at ``machine``, after its end: [[machine, what it said]]."""
    out = process.stdout.read().decode("utf-8", "replace").splitlines()
    broken = [json.loads(line.partition(MARK)[2]) for line in out if line.startswith(MARK)]
    if process.wait():
        others = [line for line in out if not line.startswith(MARK)]
        broken.append([machine, (others or ["exit code " + str(process.returncode)])[-1]])
    return broken


def pour(source: int, ends: Sequence[subprocess.Popen]) -> None:
    """Write all of the descriptor ``source`` into every one of the processes, as long as one of them takes it."""
    open_ends = list(ends)
    for piece in iter(lambda: os.read(source, PIECE) if open_ends else b"", b""):
        for one in list(open_ends):
            try:
                one.stdin.write(piece)
            except OSError:  # Why it ended is asked at the end.
                open_ends.remove(one)
    for one in ends:
        with contextlib.suppress(OSError):
            one.stdin.close()


def main(sink: str, way: str, *onward: str) -> int:
    """Return 0 when everything has arrived here, whatever became of those behind."""
    here = subprocess.Popen(json.loads(sink), stdin=subprocess.PIPE)
    chain = start(json.loads(sink), json.loads(way), onward) if onward else None
    pour(0, [one for one in (here, chain) if one])
    for broken in end(chain, onward[0]) if chain else []:
        print(MARK + json.dumps(broken))
    return here.wait()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
