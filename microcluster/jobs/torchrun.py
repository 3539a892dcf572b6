"""The kind ``torchrun``: the user's own program on PyTorch, started by one agent of torchrun on every node.

The agents are held to the private network; see docs/decisions.md. Nothing is restarted by torchrun, whose restarts
hang: an attempt ends with its first rank, and the supervisor goes on from a checkpoint.
"""

from typing import Literal

from agent.run.document import ATTEMPT, PORT, Process, RunDocument
from microcluster.jobs.own_program import OwnScript
from microcluster.jobs.ranks import MEETING_PORT, commands, environment

ROLE = "torchrun-agent"


class Job(OwnScript):
    """See `microcluster.jobs.job_section.Section`."""

    runtimes = ("container", "host")

    kind: Literal["torchrun"]

    def document(self, begun: RunDocument) -> RunDocument:
        """Return the run document: agents start the ranks on their node's slots, and the first to fail ends the run.

        ``agent/launch/torchrun.py`` finds the options for the version of PyTorch that is there; PyTorch is that of the program's interpreter.
        """
        command, machines = self.script_command(begun), begun.machines
        nodes = len(machines.addresses)
        start = (command.python, f"{begun.folder}/agent", "launch.torchrun")
        where = (str(nodes), str(machines.slots), f"{machines.addresses[0]}:{PORT}", ATTEMPT)
        given = {**environment(machines), **command.variables}
        started = {}
        for name, rank in commands(begun, command, "torch").items():
            argvs = [(*start, str(node), *where, *rank) for node in range(nodes)]
            started[name] = [Process(ROLE, node, argv, given) for node, argv in enumerate(argvs)]
        begun = begun._replace(machines=machines._replace(meeting_port=MEETING_PORT))
        return self.completed(begun, command, **started, stop_order=(ROLE,))
