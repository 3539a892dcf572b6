"""The kind ``command``: the user's own command, once on every node, which finds its peers by what it is told.

Frameworks that start their own processes on a node, such as JAX, need no more than the first node's address and a number.
"""

from dataclasses import replace
from typing import Annotated, Literal

from pydantic import Field

from agent.run import document
from microcluster.jobs.own_program import IN_FOLDER, OwnProgram
from microcluster.jobs.program_words import Words
from microcluster.jobs.ranks import commands, environment
from microcluster.jobs.run_plan import MEETING_PORT, Plan, Process, World

ROLE = "rank"
NODE = "{microcluster:node}"
WITH_HOSTS = 'cd "$0" && for host in $1; do echo "$host slots=$2"; done >"$3" && shift 3 && exec "$@"'
"""Starts a command in a folder beside a new file of the nodes, in their order, as DeepSpeed and mpirun read it; a queue's are not known earlier."""


class Job(OwnProgram):
    """See `microcluster.jobs.job_section.Section`."""

    runtimes = ("container", "host")

    kind: Literal["command"]
    command: Annotated[
        Words,
        Field(
            pattern=r"[^\s]",
            description="words that start one process on each node, instead of `script` and `arguments`; docs/own-program.md has what is filled in",
        ),
    ]

    def plan(self, world: World) -> Plan:
        """Decide everything about the run: one rank on each node, told by its words and by its environment which one it is."""
        first, nodes = world.addresses[0], str(len(world.addresses))
        places = {"nodes": nodes, "node": NODE, "slots": str(world.slots), "first": first, "port": document.PORT}
        hosts = (" ".join(world.addresses), str(world.slots), f"{world.path}/hostfile.{NODE}")
        places |= {"ranks": str(world.slots * len(world.addresses)), "hostfile": hosts[-1]}
        plan, program = self.decided(world, self.command, self.command, places)
        meeting = {"MASTER_ADDR": first, "MASTER_PORT": document.PORT, "WORLD_SIZE": nodes}
        common = {**environment(world), **meeting}
        start = (*IN_FOLDER, plan.program_folder)  # By ssh it would start in a home.
        if "{hostfile}" in f"{self.command} {self.resume}":
            start = ("sh", "-c", WITH_HOSTS, plan.program_folder, *hosts)
        started = {}
        for name, command in commands(world, program, "node").items():
            started[name] = []
            for node in range(len(world.addresses)):
                argv = [word.replace(NODE, str(node)) for word in (*start, *command)]
                given = {**common, "NODE_RANK": str(node), **program.variables}
                started[name].append(Process(ROLE, node, tuple(argv), given, name=f"node {node}"))
        return replace(plan, **started, ranks=world.addresses, meeting_port=MEETING_PORT)
