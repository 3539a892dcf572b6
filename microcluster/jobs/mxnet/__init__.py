"""The kind ``mxnet``: MXNet over a parameter server, with its image-classification example or the user's own program."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace

from agent.kill_run import STOP_FILE
from agent.ps_world import DATA_VARIABLE, VERSION_VARIABLE
from microcluster.jobs.launch import parameter_server
from microcluster.jobs.launch.parameter_server import Layout
from microcluster.jobs.mxnet import arguments
from microcluster.jobs.mxnet.section import FORMAT, VERSION, MxnetSection
from microcluster.jobs.own_program import OwnProgram, OwnProgramJob
from microcluster.jobs.values import AgentModule, Hardware, Metric, Process, Run, Sections

PREFIX = "model"
"""Of the checkpoints in the log folder."""
COMPRESSION_UNTIL = (1, 6, 0)
STOP_FILE_VARIABLE = "MICROCLUSTER_STOP_FILE"


@dataclass(frozen=True)
class MxnetJob(OwnProgramJob):
    """One run; the fields are the keys of the stack file."""

    checkpoints: str | None = FORMAT
    progress: str = FORMAT
    mxnet_version: str = "1.9.1"
    device: str = "gpu"
    servers_per_node: int = 1
    workers_per_node: int = 1
    kv_store: str = "dist_sync"
    gc_type: str = "none"
    gc_threshold: float = 0.5
    stop_grace_s: int = 0
    network: str | None = None
    num_layers: int | None = None
    data_train: str | None = None
    data_val: str | None = None
    image_shape: str | None = None
    num_classes: int | None = None
    num_examples: int | None = None
    batch_size: int = 128
    lr: float = 0.1
    lr_factor: float = 0.1
    lr_step_epochs: str = "30,60"
    mom: float = 0.9
    wd: float = 0.0001
    dtype: str = "float32"
    disp_batches: int = 20
    data_nthreads: int = 4

    @property
    def layout(self) -> Layout:
        """How many processes are on every node."""
        return Layout(self.servers_per_node, self.workers_per_node)


class Mxnet(OwnProgram):
    """See `microcluster.jobs.contract.JobKind`."""

    name = "mxnet"
    runtimes = ("container", "host")
    section = MxnetSection
    facts = MxnetJob
    exit_code_decides = False
    unit = "epoch"
    metrics = (
        Metric("accuracy", "accuracy", note="of an epoch's own batches, on the first worker"),
        Metric("validation_accuracy", "validation accuracy", note="on the first worker's share"),
        Metric("samples_per_second", "samples per second", note="of all workers together"),
    )
    stop_order = parameter_server.STOP_ORDER
    meeting_port = parameter_server.PORT
    checkpoint_files = "the parameters of an epoch (.params), beside the network (-symbol.json)"

    def problems(self, sections: Sections, hardware: Hardware, *, ordering: bool) -> list[str]:
        """Say what MXNet would only say on the machines."""
        job, found = sections["job"], super().problems(sections, hardware, ordering=ordering)
        version = str(job.get("mxnetVersion", MxnetJob.mxnet_version))
        known = VERSION.fullmatch(version)
        if job.get("gcType") == "2bit" and known and arguments.version_of(version) > COMPRESSION_UNTIL:
            found.append(
                f"job/gcType: MXNet {version} refuses 2bit: since 1.7.0 Module.fit pushes and pulls in one call, which cannot "
                "compress; give mxnetVersion: 1.6.0 or older, or gcType: none"
            )
        if job.get("gcType") == "2bit" and "network" not in job:
            found.append("job/gcType: is an argument of the example that network chooses; give it in arguments")
        return found

    def describe(self, job: MxnetJob) -> str:
        """Name the network, or the script and its arguments."""
        return (
            f"{job.network}, {job.kv_store}, batch {job.batch_size} of each worker"
            if job.network
            else super().describe(job)
        )

    def processes(self, run: Run, *, resume: bool) -> Sequence[Process]:
        """Return every role with the same program, each noted by its node when it dies."""
        job: MxnetJob = run.job
        own = self.program(run, resume=resume)

        def command(local: int) -> tuple[str, ...]:
            given = arguments.trainer(job, f"{run.path}/logdir/{PREFIX}", _gpus(run, local), resume=resume)
            return (*run.wrapper, *own[:2], *(given if job.network else ()), *own[2:])

        return self._with_environment(run, parameter_server.on_every_node(run, job.layout, command))

    def ranks(self, run: Run) -> Sequence[str]:
        """Return one rank for each worker."""
        return parameter_server.ranks(run, run.job.layout)

    def collective(self, run: Run, argv: Sequence[str]) -> Sequence[Process]:
        """Return the same roles with another program, whose workers add up over the servers."""
        words = (*argv, parameter_server.MODULE)
        return self._with_environment(run, parameter_server.on_every_node(run, run.job.layout, lambda _: words))

    def reader(self, job: MxnetJob) -> AgentModule:
        """Return what reads MXNet's own lines, or JSON lines, or lines by the user's pattern."""
        return AgentModule(FORMAT) if job.progress == FORMAT else super().reader(job)

    def checkpoints(self, job: MxnetJob) -> AgentModule:
        """Return what knows MXNet's files, or those that the user's pattern names."""
        return AgentModule(FORMAT, {"prefix": PREFIX}) if job.checkpoints == FORMAT else super().checkpoints(job)

    def stop_grace_s(self, job: MxnetJob) -> int:
        """Return what the stack file says."""
        return job.stop_grace_s

    def _with_environment(self, run: Run, processes: Sequence[Process]) -> list[Process]:
        """Return the processes with what the agent and the program may look for."""
        job: MxnetJob = run.job
        given = {
            VERSION_VARIABLE: job.mxnet_version,
            DATA_VARIABLE: shlex.join(filter(None, (job.data_train, job.data_val))),
            STOP_FILE_VARIABLE: f"{run.path}/{STOP_FILE}",
            **self.variables(run),
        }
        return [replace(one, environment={**one.environment, **given}) for one in processes]


def _gpus(run: Run, local: int) -> tuple[int, ...]:
    """Return the GPUs of one of a node's workers: each gets its own part, and more workers than GPUs share them."""
    job, slots = run.job, run.world.slots
    return tuple(range(local % slots, slots, job.workers_per_node)) if job.device == "gpu" else ()


KIND = Mxnet()
