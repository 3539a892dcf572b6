"""The kind ``command``: the user's own command, once on every node, which finds its peers by what it is told.

Frameworks that start their own processes on a node, such as JAX, need no more than the first node's address and a number.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Literal

from pydantic import Field

from microcluster.jobs.own_program import OwnProgram, Words
from microcluster.jobs.plan import Plan, Process, World
from microcluster.jobs.torchrun import environment

ROLE = "rank"
PORT = 48125
"""On the first node, where the program may meet."""
IN_FOLDER = 'cd "$0" && exec "$@"'
"""What another node is told by ssh starts in a home."""


class Job(OwnProgram):
    """See `microcluster.jobs.contract.Section`."""

    runtimes = ("container", "host")
    started_by = "node"

    kind: Literal["command"]
    command: Annotated[
        Words,
        Field(
            pattern=r"[^\s]",
            description="instead of `script` and `arguments`: words that start one process on each node, in the program's folder; `{node}` is its number from 0, `{nodes}` "
            "how many there are, `{slots}` the GPUs of each, `{first}` the first one's address; `python` is `job.python`",
        ),
    ]

    @property
    def title(self) -> str:
        """The command as it is written."""
        return self.command

    def words(self, world: World) -> tuple[str, ...]:
        """Return the command; ``{node}`` is left open."""
        first, *others = self.filled(world, self.command)
        return (self.interpreter(world) if first == "python" else first, *others)

    def on_every_rank(self, world: World, command: Sequence[str], variables: Mapping[str, str]) -> Sequence[Process]:
        """Return one process for each node, told by its words and by its environment which one it is."""
        folder = self.folder(world)
        nodes = len(world.addresses)
        meeting = {"MASTER_ADDR": world.addresses[0], "MASTER_PORT": str(PORT), "WORLD_SIZE": str(nodes)}
        shared = {"{nodes}": str(nodes), "{slots}": str(world.slots), "{first}": world.addresses[0]}
        common = {**environment(world), **meeting}
        made = []
        for node in range(nodes):
            argv = list(command)
            for placeholder, value in {**shared, "{node}": str(node)}.items():
                argv = [word.replace(placeholder, value) for word in argv]
            given = {**common, "NODE_RANK": str(node), **variables}
            started = ("sh", "-c", IN_FOLDER, folder, *argv)
            made.append(Process(ROLE, node, started, given, name=f"node {node}"))
        return made

    def plan(self, world: World) -> Plan:
        """Decide everything about the run: each node has one rank."""
        return replace(super().plan(world), ranks=world.addresses, meeting_port=PORT)
