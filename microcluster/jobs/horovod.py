"""The kind ``horovod``: the user's own program, started as every rank by mpirun."""

from typing import Literal

from agent.run.document import RunDocument
from microcluster.jobs.mpirun import by_mpirun
from microcluster.jobs.own_program import OwnScript


class Job(OwnScript):
    """See `microcluster.jobs.job_section.Section`."""

    kind: Literal["horovod"]

    def document(self, begun: RunDocument) -> RunDocument:
        """Return the run document: one mpirun starts all ranks."""
        command = self.script_command(begun)
        return self.completed(begun, command, **by_mpirun(begun, command))
