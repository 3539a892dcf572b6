"""`fab ssh`: a shell on a node, or one command there."""

import os
import shlex
import sys
from typing import Annotated

from microcluster.command_line.command import STACK, Node, Option, StackName, command
from microcluster.jobs.cluster_facts import ClusterFacts
from microcluster.remote.openssh import ssh_argv
from microcluster.remote.steps import open_hosts
from microcluster.run.cluster import cluster_of, host_named
from microcluster.setup.errors import CommandFailed, UserMistake


@command
def ssh(
    node: Node,
    stack: StackName = STACK,
    container: Annotated[bool, Option("in the training container instead of on the machine")] = False,
) -> None:
    """Open a shell on NODE, or run the command after `--` there, in the shell of NODE, as ssh does; --container does it in its container."""
    cluster = cluster_of(stack)
    words = sys.argv[sys.argv.index("--") + 1 :] if "--" in sys.argv else ()
    line, terminal = " ".join(words), sys.stdin.isatty()
    if container:
        line = line_inside(cluster, line, terminal=terminal)
    options = ("-t",) if container and terminal else ()
    argv = (*ssh_argv(host_named(cluster, node), open_hosts(cluster), more=options), *filter(None, [line]))
    try:
        os.execvp(argv[0], argv)
    except FileNotFoundError as missing:
        raise CommandFailed(
            f"there is no {argv[0]} on this computer. Install openssh-client, then try again."
        ) from missing


def line_inside(cluster: ClusterFacts, line: str, *, terminal: bool) -> str:
    """Return the line that runs ``line`` in the training container of a machine, or a shell there where it is empty."""
    if not cluster.container:
        raise UserMistake(f"The job of stack {cluster.stack} runs in no container. Leave out --container.")
    inside = ("docker", "exec", "-it" if terminal else "-i", cluster.container.name, "bash")
    return shlex.join((*inside, "-c", line) if line else inside)
