"""The kind ``torchrun``: the user's own program on PyTorch, started by one agent of torchrun on every node.

The agents are held to the private network; see docs/decisions/running-a-job.md. Nothing is restarted by torchrun, whose restarts
hang: an attempt ends with its first rank, and the supervisor goes on from a checkpoint.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

from agent import spec
from microcluster.jobs.own_program import OwnScript
from microcluster.jobs.plan import Plan, Process, World

ROLE = "torchrun-agent"
PORT = 48123
"""On the first node; the ranks' other ports are ephemeral."""


class Job(OwnScript):
    """See `microcluster.jobs.contract.Section`."""

    runtimes = ("container", "host")
    started_by = "torch"

    kind: Literal["torchrun"]

    def on_every_rank(self, world: World, command: Sequence[str], variables: Mapping[str, str]) -> Sequence[Process]:
        """Return the agents, each of which starts ``command`` on its node's slots; the first to fail ends the run.

        ``agent/launch/torchrun.py`` finds the options for the version of PyTorch that is there; PyTorch is that of the program's interpreter.
        """
        given = {**environment(world), **variables}
        started = (self.interpreter(world), world.agent, "launch.torchrun")
        nodes = len(world.addresses)
        where = (str(nodes), str(world.slots), f"{world.addresses[0]}:{PORT}", spec.ATTEMPT)
        return [Process(ROLE, node, (*started, str(node), *where, *command), given) for node in range(nodes)]

    def plan(self, world: World) -> Plan:
        """Decide everything about the run."""
        return replace(super().plan(world), stop_order=(ROLE,), meeting_port=PORT)


def environment(world: World) -> dict[str, str]:
    """Return what every agent and rank gets beside its own environment and the run's mark.

    torchrun itself starts Python unbuffered, but not a command that it is given whole; buffered output comes hours late.
    """
    cards = {f"{library}_SOCKET_IFNAME": world.interface for library in ("GLOO", "NCCL", "TP")}
    return {**cards, "NCCL_DEBUG": "INFO", "LC_ALL": "C.UTF-8", "PYTHONUNBUFFERED": "1"}
