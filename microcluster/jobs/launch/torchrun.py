"""Ranks over torchrun: one agent on every node, held to the private network. See docs/decisions/running-a-job.md.

Nothing is restarted by torchrun, whose restarts hang: an attempt ends with its first rank, and the supervisor goes
on from a checkpoint.
"""

from collections.abc import Mapping, Sequence

from agent import program, spec
from microcluster.jobs.values import Process, Run, World

ROLE = "torchrun-agent"
WORLD = "torch_world"
"""The agent's module that knows such a rank's place."""
UNBUFFERED = {"PYTHONUNBUFFERED": "1"}
"""torchrun itself starts Python so, but not a command that it is given whole; buffered output comes hours late."""
PORT = 48123
"""On the first node; the ranks' other ports are ephemeral."""


def environment(world: World) -> dict[str, str]:
    """Return what every agent and rank gets beside its own environment and the run's mark."""
    cards = {f"{library}_SOCKET_IFNAME": world.interface for library in ("GLOO", "NCCL", "TP")}
    return {**cards, "NCCL_DEBUG": "INFO", "LC_ALL": "C.UTF-8", **UNBUFFERED}


def on_every_node(run: Run, command: Sequence[str], variables: Mapping[str, str]) -> list[Process]:
    """Return the agents, each of which starts ``command`` on its node's slots; the first to fail ends the run.

    ``agent/torchrun.py`` finds the options for the version of PyTorch that is there; PyTorch is that of the program's interpreter.
    """
    world, nodes = run.world, len(run.world.addresses)
    where = (str(nodes), str(world.slots), f"{world.addresses[0]}:{PORT}", spec.ATTEMPT)
    given = {**environment(world), **variables}
    agents = [program(run.path, "torchrun", str(node), *where)[1:] for node in range(nodes)]
    return [Process(ROLE, node, (run.python, *agent, *command), given) for node, agent in enumerate(agents)]
