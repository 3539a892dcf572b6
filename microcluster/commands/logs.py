"""`fab logs`: print the end of the job's log, or follow it by byte offset, so that a lost connection loses no line."""

import codecs
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from pydantic import Base64Bytes, TypeAdapter

from microcluster.command_line.command import STACK, Option, StackName, command
from microcluster.core.plain_text import note, say
from microcluster.display import run_text
from microcluster.jobs.cluster_facts import ClusterFacts
from microcluster.jobs.run_spec import RunFolder
from microcluster.remote import job as remote_job
from microcluster.remote.answers import Size, read_answer
from microcluster.remote.errors import UnreachableError
from microcluster.remote.host import Host
from microcluster.run.cluster import cluster_of, launcher_of
from microcluster.setup.errors import CommandFailed, UserMistake

CHUNK_BYTES = 1 << 20
LOOK_EVERY_S = 1.0
RETRY_AFTER_S = 5.0
LOST_LIMIT_S = 600.0
ENDED = ("finished", "failed", "stopped")
DRAWN_OVER = re.compile(r"(?<![^\r\n])[^\r\n]*+\r(?=[^\n])")
"""Text of a line that was drawn over, as progress bars are."""
READ = """
import base64, json, os, sys
path, offset, lines, limit = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
size = os.path.getsize(path) if os.path.exists(path) else 0
with open(path if size else os.devnull, "rb") as file:
    if offset < 0:  # Where the last lines begin.
        offset, found, end = size, 0, size
        while offset and found <= lines and end - offset < limit:
            offset = max(0, offset - 65536)
            file.seek(offset)
            found = file.read(end - offset).count(b"\\n")
        file.seek(offset)
        text = file.read(end - offset).split(b"\\n")
        offset = end - min(len(b"\\n".join(text[-lines - 1:])), limit)
    elif offset > size:  # The file is another one, as after the machine was replaced.
        offset = 0
    file.seek(offset)
    print(json.dumps([offset, base64.b64encode(file.read(limit)).decode()]))
"""
"""Runs on the launcher: prints the offset and, in Base64, the bytes from there."""
PIECE = TypeAdapter(tuple[Size, Base64Bytes])


@dataclass
class LogEnd:
    """Position in a log; ``offset`` is negative before the first read, which begins ``lines`` before the end."""

    launcher: Host
    path: str
    lines: int
    offset: int = -1

    def read(self) -> bytes:
        """Return what was written since the last read."""
        argv = ("python3", "-", self.path, str(self.offset), str(self.lines), str(CHUNK_BYTES))
        answer = self.launcher.run(argv, stdin=READ).stdout
        offset, content = read_answer(PIECE, answer, f"reading {self.path} of {self.launcher}")
        self.offset = offset + len(content)
        return content


@command
def logs(
    stack: StackName = STACK,
    lines: Annotated[str, Option("number of last lines to print", letter="n")] = "100",
    follow: Annotated[bool, Option("keep printing until the job ends")] = False,
) -> int:
    """Print the end of the job's log; with --follow also new lines until the job ends."""
    if not lines.isdecimal() or not int(lines):
        raise UserMistake(f"--lines {lines} is not a number of lines; for example: fab logs --lines 20 --stack {stack}")
    cluster = cluster_of(stack)
    end = LogEnd(launcher_of(cluster), f"{RunFolder(cluster).path}/job.log", int(lines))
    if follow:
        print_until_ended(end, cluster)
    else:
        text = end.read().decode("utf-8", "replace")
        _write(text or f"run {cluster.run} has no log yet. See its state: fab status --stack {stack}\n")
    outcome = remote_job.observe(end.launcher, cluster)
    if outcome.state in ("failed", "stalled"):
        note("\n".join(["", *run_text.trouble(outcome, stack)]))
    return 0


def _write(text: str) -> None:
    say(DRAWN_OVER.sub("", text), end="")


def print_until_ended(
    end: LogEnd,
    cluster: ClusterFacts,
    write: Callable[[str], object] = _write,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Print the log as it grows; after a lost connection it continues at the same byte."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    answered, over = time.monotonic(), False
    while True:
        try:
            content = end.read()
            if over and not content:  # Everything that was written before the end has been read.
                return
            state = None if over or content else remote_job.observe(end.launcher, cluster).state
            if state == "absent":
                raise CommandFailed(
                    f"stack {cluster.stack} has no run {cluster.run} on its launcher. Start it: make up STACK={cluster.stack}"
                )
            over = over or state in ENDED
            answered = time.monotonic()
        except UnreachableError as error:
            if time.monotonic() - answered > LOST_LIMIT_S:
                raise
            note(f"{error} Trying again; no line is lost.")
            sleep(RETRY_AFTER_S)
            continue
        write(decoder.decode(content))
        if not content and not over:
            sleep(LOOK_EVERY_S)
