"""The kind ``horovod``: the user's own program, started as every rank by mpirun."""

from collections.abc import Sequence
from typing import Literal

from microcluster.jobs.launch import mpirun
from microcluster.jobs.own_program import OwnProgram
from microcluster.jobs.own_program.section import OwnProgramSection
from microcluster.jobs.values import Process, Run


class HorovodSection(OwnProgramSection):
    """What the stack file may say."""

    kind: Literal["horovod"]


class Horovod(OwnProgram):
    """See `microcluster.jobs.contract.JobKind`."""

    name = "horovod"
    runtimes = ("container",)
    section = HorovodSection

    def on_every_rank(self, run: Run, command: Sequence[str]) -> Sequence[Process]:
        """Return one mpirun on the launcher."""
        return [mpirun.on_every_rank(run, command, self.variables(run))]

    def collective(self, run: Run, argv: Sequence[str]) -> Sequence[Process]:
        """Return the same mpirun with another program."""
        return [mpirun.on_every_rank(run, (*argv, mpirun.WORLD), self.variables(run))]


KIND = Horovod()
