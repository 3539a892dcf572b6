"""The kind ``horovod``: the user's own program, started as every rank by mpirun."""

from dataclasses import replace
from typing import Literal

from microcluster.jobs.mpirun import by_mpirun
from microcluster.jobs.own_program import OwnScript
from microcluster.jobs.run_plan import Plan, World


class Job(OwnScript):
    """See `microcluster.jobs.job_section.Section`."""

    kind: Literal["horovod"]

    def plan(self, world: World) -> Plan:
        """Decide everything about the run."""
        plan, program = self.program(world)
        return replace(plan, **by_mpirun(world, program))
