"""The kind ``command``: the user's own command, once on every node, which finds its peers by what it is told.

Frameworks that start their own processes on a node, such as JAX, need no more than the first node's address and a number.
"""

from typing import Annotated, Literal

from pydantic import Field

from agent.run.document import PORT, Process, RunDocument
from microcluster.jobs.own_program import IN_FOLDER, OwnProgram
from microcluster.jobs.program_words import Words
from microcluster.jobs.ranks import MEETING_PORT, commands, environment

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

    def document(self, begun: RunDocument) -> RunDocument:
        """Return the run document: one rank on each node, with its number in its argv and in its environment."""
        machines = begun.machines
        first, nodes = machines.addresses[0], str(len(machines.addresses))
        places = {"nodes": nodes, "node": NODE, "slots": str(machines.slots), "first": first, "port": PORT}
        hosts = (" ".join(machines.addresses), str(machines.slots), f"{begun.folder}/hostfile.{NODE}")
        places |= {"ranks": str(machines.slots * len(machines.addresses)), "hostfile": hosts[-1]}
        command, folder = self.rank_command(begun, self.command, self.command, places), self.folder(begun)
        meeting = {"MASTER_ADDR": first, "MASTER_PORT": PORT, "WORLD_SIZE": nodes}
        common = {**environment(machines), **meeting}
        start = (*IN_FOLDER, folder)  # By ssh it would start in a home.
        if "{hostfile}" in f"{self.command} {self.resume}":
            start = ("sh", "-c", WITH_HOSTS, folder, *hosts)
        started = {}
        for name, rank in commands(begun, command, "node").items():
            started[name] = []
            for node in range(len(machines.addresses)):
                argv = [word.replace(NODE, str(node)) for word in (*start, *rank)]
                given = {**common, "NODE_RANK": str(node), **command.variables}
                started[name].append(Process(ROLE, node, tuple(argv), given, name=f"node {node}"))
        machines = machines._replace(ranks=machines.addresses, meeting_port=MEETING_PORT)
        return self.completed(begun._replace(machines=machines), command, **started)
