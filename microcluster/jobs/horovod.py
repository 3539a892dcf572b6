"""The kind ``horovod``: the user's own program, started as every rank by mpirun."""

from collections.abc import Mapping, Sequence
from typing import Literal

from microcluster.jobs import mpirun
from microcluster.jobs.own_program import OwnScript
from microcluster.jobs.plan import Process, World


class Job(OwnScript):
    """See `microcluster.jobs.contract.Section`."""

    started_by = mpirun.WORLD

    kind: Literal["horovod"]

    def on_every_rank(self, world: World, command: Sequence[str], variables: Mapping[str, str]) -> Sequence[Process]:
        """Return one mpirun on the launcher."""
        return mpirun.on_every_rank(world, command, variables)
