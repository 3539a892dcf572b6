"""The kind ``torchrun``: the user's own program on PyTorch, started by one agent of torchrun on every node.

The agents are held to the private network; see docs/decisions.md. Nothing is restarted by torchrun, whose restarts
hang: an attempt ends with its first rank, and the supervisor goes on from a checkpoint.
"""

from dataclasses import replace
from typing import Literal

from agent.run import document
from microcluster.jobs.own_program import OwnScript
from microcluster.jobs.ranks import commands, environment
from microcluster.jobs.run_plan import MEETING_PORT, Plan, Process, World

ROLE = "torchrun-agent"


class Job(OwnScript):
    """See `microcluster.jobs.job_section.Section`."""

    runtimes = ("container", "host")

    kind: Literal["torchrun"]

    def plan(self, world: World) -> Plan:
        """Decide everything about the run: agents start the ranks on their node's slots, and the first to fail ends the run.

        ``agent/launch/torchrun.py`` finds the options for the version of PyTorch that is there; PyTorch is that of the program's interpreter.
        """
        plan, program = self.program(world)
        nodes = len(world.addresses)
        start = (program.python, f"{world.path}/agent", "launch.torchrun")
        where = (str(nodes), str(world.slots), f"{world.addresses[0]}:{document.PORT}", document.ATTEMPT)
        given = {**environment(world), **program.variables}
        started = {}
        for name, command in commands(world, program, "torch").items():
            argvs = [(*start, str(node), *where, *command) for node in range(nodes)]
            started[name] = [Process(ROLE, node, argv, given) for node, argv in enumerate(argvs)]
        return replace(plan, **started, stop_order=(ROLE,), meeting_port=MEETING_PORT)
