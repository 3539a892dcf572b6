"""`fab ssh`: a shell on a node, or one command there."""

import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from microcluster.commands.command import STACK, CommandFailed, command
from microcluster.commands.stack_outputs import cluster_of, host_named
from microcluster.remote.openssh import ssh_argv
from microcluster.remote.steps import open_hosts


@command
def ssh(node: str, stack: str = STACK) -> None:
    """Open a shell on NODE, or run the command after `--` there, in the shell of NODE, as ssh does."""
    cluster = cluster_of(stack)
    line = " ".join(words_after_dashes(sys.argv))
    _exec((*ssh_argv(host_named(cluster, node), open_hosts(cluster)), *([line] if line else [])))


def _exec(argv: Sequence[str]) -> NoReturn:
    try:
        os.execvp(argv[0], argv)  # noqa: S606 - words, no shell
    except FileNotFoundError as missing:
        raise CommandFailed(
            f"there is no {argv[0]} on this computer. Install openssh-client, then try again."
        ) from missing


def words_after_dashes(argv: list[str]) -> tuple[str, ...]:
    """Return the words after the first ``--``."""
    return tuple(argv[argv.index("--") + 1 :]) if "--" in argv else ()
