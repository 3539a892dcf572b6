"""Checkpoints on a drive that every node mounts: no replicas, one folder for each run, and every node sees the same files."""

import os
import stat
from typing import List, Optional, Sequence

from agent.formats.checkpoints.entries import stat_of
from agent.machine import parallel, wait_until
from agent.run.context import Run
from agent.supervise.health_rules import Failed

WORD = ".attempt"
"""A file that the launcher writes and the other nodes read: it shows that they mount the same drive."""
ASK_TIMEOUT_S = 30
SEEN_TIMEOUT_S = 20
"""A drive may show its files with delay: five seconds and more with the caches of a network mount."""
READ = 'cat "$0/' + WORD + '"'
LENGTHS = 'for file; do { wc -c < "$file"; } 2>/dev/null || echo 0; done'
ASK_LENGTHS = ["xargs", "-0", "sh", "-c", LENGTHS, "lengths"]
"""Prints the length of each file that standard input names, 0 where there is none."""


def use(run: Run) -> None:
    """Let the launcher's log folder be the run's folder on the drive."""
    run.doing = "opening the shared folder " + run.spec.checkpoints.shared
    logdir = run.path("logdir")
    try:
        os.makedirs(run.spec.checkpoints.shared, exist_ok=True)
        if not run.is_shared and not os.path.islink(logdir):
            if os.path.isdir(logdir):
                os.rmdir(logdir)
            os.symlink(run.spec.checkpoints.shared, logdir)
        with open(os.path.join(logdir, WORD), "w") as file:
            file.write(run.attempt)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise Failed("shared-folder", run.doing + ": " + str(error)) from error


def compare(run: Run, checkpoint: Sequence[str]) -> None:
    """Refuse to start while a node does not see what the launcher wrote, or the files of the checkpoint in another length."""
    run.doing = "comparing the shared folder " + run.spec.checkpoints.shared
    agree(run, ["sh", "-c", READ, run.spec.checkpoints.shared], run.attempt)
    files = [run.path(file) for file in checkpoint]
    agree(run, ASK_LENGTHS, "\n".join(str(length(file)) for file in files), named(files))


def named(files: Sequence[str]) -> bytes:
    """Return the names of files as standard input; there may be more than a command line holds."""
    return b"\0".join(map(os.fsencode, files))


def length(file: str) -> int:
    """Return a file's length as :data:`ASK_LENGTHS` prints it."""
    found = stat_of(file)
    return found.st_size if found and stat.S_ISREG(found.st_mode) else 0


def lengths_elsewhere(run: Run, files: Sequence[str]) -> Optional[List[int]]:
    """Return the length of each file as the last node sees it, 0 where there is none; None where that node does not say."""
    _, output = run.ask(ASK_LENGTHS, ASK_TIMEOUT_S, run.spec.machines.addresses[-1], marked=False, given=named(files))
    found = [int(word) for word in output.split() if word.isdigit()]
    return found if len(found) == len(files) else None


def agree(run: Run, argv: Sequence[str], wanted: str, given: bytes = b"") -> None:
    """Ask every other node until its answer is the wanted one."""

    def ask(address: str) -> str:
        seen = []

        def agrees() -> bool:
            seen.append(run.ask(argv, ASK_TIMEOUT_S, address, marked=False, given=given)[1])
            return seen[-1] == wanted

        wait_until(agrees, SEEN_TIMEOUT_S, 0.5)
        return seen[-1]

    others = run.spec.machines.addresses[1:]
    for address, found in zip(others, parallel(ask, others)):
        if found != wanted:
            what = "{}: {} sees {!r} there and not {!r}".format(run.doing, run.name_of(address), found[-200:], wanted)
            raise Failed("shared-folder", what + "; see that it mounts the same drive")
