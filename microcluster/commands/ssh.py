"""`fab ssh`: a shell on a node, or one command there."""

import os
import sys

from microcluster.commands.command_line import STACK, CommandFailed, command
from microcluster.commands.stack_outputs import cluster_of, host_named
from microcluster.remote.openssh import ssh_argv
from microcluster.remote.steps import open_hosts


@command
def ssh(node: str, stack: str = STACK) -> None:
    """Open a shell on NODE, or run the command after `--` there, in the shell of NODE, as ssh does."""
    cluster = cluster_of(stack)
    words = sys.argv[sys.argv.index("--") + 1 :] if "--" in sys.argv else ()
    line = [" ".join(words)] if words else []
    argv = (*ssh_argv(host_named(cluster, node), open_hosts(cluster)), *line)
    try:
        os.execvp(argv[0], argv)
    except FileNotFoundError as missing:
        raise CommandFailed(
            f"there is no {argv[0]} on this computer. Install openssh-client, then try again."
        ) from missing
