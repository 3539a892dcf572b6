"""The kind ``torchrun``: the user's own program on PyTorch, started by one agent of torchrun on every node."""

from collections.abc import Sequence
from typing import Literal

from microcluster.jobs.launch import torchrun
from microcluster.jobs.own_program import OwnProgram
from microcluster.jobs.own_program.section import OwnProgramSection
from microcluster.jobs.values import Process, Run


class TorchrunSection(OwnProgramSection):
    """What the stack file may say."""

    kind: Literal["torchrun"]


class Torchrun(OwnProgram):
    """See `microcluster.jobs.contract.JobKind`."""

    name = "torchrun"
    runtimes = ("container", "host")
    section = TorchrunSection
    stop_order = (torchrun.ROLE,)
    meeting_port = torchrun.PORT

    def on_every_rank(self, run: Run, command: Sequence[str]) -> Sequence[Process]:
        """Return one agent of torchrun for each node."""
        return torchrun.on_every_node(run, command, self.variables(run))

    def collective(self, run: Run, argv: Sequence[str]) -> Sequence[Process]:
        """Return the same agents with another program, which reduces with the backend that the run will use."""
        return torchrun.on_every_node(run, (*argv, torchrun.WORLD), self.variables(run))


KIND = Torchrun()
