"""The lines that a process prints, as they come; of a line that is drawn again, as progress bars do, the log gets one a second."""

import os
import queue
import re
import select
import subprocess
import time
from typing import List

from agent.machine import LINE_BYTES

READ_BYTES, PIPE_BYTES = 1 << 16, 1 << 20
"""Bytes that are read at once, and most bytes in a pipe: more than that comes from a process that has not ended."""
END = re.compile(rb"\r?\n|\r(?=[^\n])")
"""End of a line, or of what it showed before it was drawn again."""
REDRAWN_EVERY_S = 1.0
"""Seconds between two states of a line in the log; a state that nothing has followed for so long is the one that it shows."""
LEFT_OPEN_S = 5.0
"""After its end a process's output may still be on its way; what holds it open for longer is a process that it has left behind."""


class Lines:
    """Splits what a process prints into lines; one that is drawn again comes once for each time, and ends with a carriage return then."""

    def __init__(self) -> None:
        self.rest, self.drawn_again, self.shown = b"", False, b""

    def take(self, given: bytes) -> List[bytes]:
        """Return what has ended with ``given``."""
        text, ends = self.rest + given, [0]
        ends += [match.end() for match in END.finditer(text)]
        pieces, self.rest = [text[begin:end] for begin, end in zip(ends, ends[1:])], text[ends[-1] :]
        if pieces:
            self.drawn_again = pieces[-1].endswith(b"\r")
        if len(self.rest) > LINE_BYTES:
            pieces, self.rest = pieces + [self.rest], b""
        return [piece for piece in pieces if piece != b"\r"]

    def waiting(self) -> List[bytes]:
        """Return what a line shows that is drawn again, and may show for long."""
        new = (self.drawn_again or self.rest.endswith(b"\r")) and self.rest not in (b"", self.shown)
        self.shown = self.rest
        return [self.rest.rstrip(b"\r") + b"\r"] if new else []


def follow(number: int, child: subprocess.Popen, output: queue.Queue, tag: bytes, left_open: List[int]) -> None:
    """Put a child's lines into the queue as they come, each as (line, whether it is for the log), and at last its exit code.

    A child that has ended while somebody else holds its output open is noted in ``left_open``.
    """
    coming, lines, logged_at, ended, late = select.poll(), Lines(), 0, None, 0
    coming.register(child.stdout, select.POLLIN)
    while True:
        given = os.read(child.stdout.fileno(), READ_BYTES) if coming.poll(REDRAWN_EVERY_S * 1000) else None
        if given == b"":
            break
        found = lines.take(given) if given else lines.waiting()
        if found and found[-1].endswith(b"\r") and time.monotonic() - logged_at >= REDRAWN_EVERY_S:
            logged_at, logged = time.monotonic(), found[-1]
        else:
            logged = None
        if found:
            output.put((number, [(tag + line, line is logged or not line.endswith(b"\r")) for line in found]))
        if ended is None:
            ended = None if child.poll() is None else time.monotonic()
            continue
        late += len(given or b"")
        if time.monotonic() - ended >= LEFT_OPEN_S and (not given or late > PIPE_BYTES):
            left_open.append(number)
            break
    if lines.rest:
        output.put((number, [(tag + lines.rest, True)]))
    output.put((number, child.wait()))
