"""The kind ``mxnet``: the user's own program on MXNet over a parameter server, held to the private network.

Scheduler, servers and workers are each started on their node. Every process runs the same command; its role comes from the
environment, and a server or scheduler never reaches the program's own code. When one of them dies the others hang without a word, so
any end but a good one ends the run.
"""

import re
import shlex
from collections.abc import Mapping
from itertools import pairwise
from typing import Annotated, Any, Literal

from pydantic import Field, StrictInt, StrictStr

from agent.kill_run import STOP_FILE
from agent.launch.probe import DATA_VARIABLE, NUMBER_VARIABLE, VERSION_VARIABLE
from agent.run.document import NO_CHECKPOINTS, PORT, Metric, Process, RunDocument
from microcluster.jobs.job_section import MOST_STEPS, Hardware, Origin, Sections, matching
from microcluster.jobs.own_program import OwnScript
from microcluster.jobs.program_words import LONGEST, Words, pattern_or
from microcluster.jobs.ranks import MEETING_PORT, Argv, RankCommand, commands, environment

FORMAT = "mxnet"
"""Format of log and checkpoints, where the program writes them as MXNet does."""
SCHEDULER, SERVER, WORKER = "scheduler", "server", "worker"
GPUS = "{microcluster:gpus}"
EXAMPLE = "--network"
"""An argument of every one of MXNet's image-classification examples."""
DATA = ("--data-train", "--data-val")
"""The arguments of MXNet's own examples whose files the preflight compares."""
VERSION = re.compile(r"\d+\.\d+\.\d+")
USUAL_VERSION = "1.9.1"
COMPRESSION_UNTIL = (1, 6, 0)
COMPRESSES = re.compile(r"--gc-type[ =]+2bit\b")
TOGETHER = re.compile(r"--kv-store[ =]+dist_")
CHECKPOINT_FILES = "the parameters of an epoch (.params), beside the network (-symbol.json)"
METRICS = (
    Metric("accuracy", "accuracy", note="of an epoch's own batches, on the first worker"),
    Metric("validation_accuracy", "validation accuracy", note="on the first worker's share"),
    Metric("samples_per_second", "samples per second", note="of all workers together"),
)
PerNode = Annotated[StrictInt, Field(ge=1, le=64)]


class Job(OwnScript):
    """See `microcluster.jobs.job_section.Section`; a step is an epoch."""

    runtimes = ("container", "host")
    goes_on_elsewhere = False

    kind: Literal["mxnet"]
    max_steps: Annotated[StrictInt, Field(ge=1, le=MOST_STEPS, description="1 to 10,000,000: epochs", examples=["20"])]
    arguments: Annotated[
        Words,
        Field(description="as for the other programs; `{gpus}` are a worker's own GPUs: `0,1`"),
    ] = ""
    progress: Annotated[
        StrictStr,
        Field(max_length=LONGEST, description="`mxnet`: MXNet's own lines; or as for the other programs"),
        pattern_or(FORMAT, "json"),
    ] = FORMAT
    checkpoints: Annotated[
        Annotated[StrictStr, Field(max_length=LONGEST), pattern_or(FORMAT)] | None,
        Field(
            description="`mxnet`, which is meant where `{logdir}` is given to the program: `model-0003.params`; or as for the other programs"
        ),
    ] = None
    mxnet_version: Annotated[
        StrictStr,
        matching(VERSION, "a version; for example 1.9.1"),
        Field(description="the version in the image or on the machines; the preflight compares"),
    ] = USUAL_VERSION
    servers_per_node: PerNode = 1
    workers_per_node: PerNode = 1
    stop_grace_s: Annotated[
        StrictInt,
        Field(
            ge=0,
            le=3600,
            description="0 to 3,600: how long `fab stop` waits for a program that looks for `MICROCLUSTER_STOP_FILE`",
        ),
    ] = 0

    @classmethod
    def defaults(cls, sections: Sections, hardware: Hardware) -> Mapping[str, Origin]:
        """Expect checkpoints of a program that knows where they belong, and of MXNet's examples."""
        job = sections["job"]
        saves = _knows_logdir(job) or EXAMPLE in str(job.get("arguments"))
        own = {"job.checkpoints": Origin(FORMAT, "MXNet's own, in {logdir}")} if saves else {}
        return {**super().defaults(sections, hardware), **own}

    @classmethod
    def problems(cls, sections: Sections, hardware: Hardware, *, ordering: bool) -> list[str]:
        """Say what MXNet would only say on the machines."""
        job = sections["job"]
        version, words = str(job.get("mxnetVersion", USUAL_VERSION)), str(job.get("arguments", ""))
        has_others = (hardware.nodes, job.get("workersPerNode", 1)) != (1, 1)
        is_newer = VERSION.fullmatch(version) and tuple(map(int, version.split("."))) > COMPRESSION_UNTIL
        refused = {
            f"job/arguments: MXNet {version} refuses --gc-type 2bit: since 1.7.0 Module.fit pushes and pulls in one call, which cannot "
            "compress; give mxnetVersion: 1.6.0 or older, or leave it out": is_newer and COMPRESSES.search(words),
            "job/arguments: {logdir} is not among them, so that no checkpoint is saved; MXNet's examples take --model-prefix "
            "{logdir}/model": job.get("checkpoints") == FORMAT and not _knows_logdir(job),
            "job/arguments: without --kv-store dist_sync (or dist_device_sync) each worker of MXNet's examples trains alone": (
                has_others and EXAMPLE in words and not TOGETHER.search(words)
            ),
            "job/resume: without it MXNet's examples begin again whenever a run goes on; they take --load-epoch {step}": (
                EXAMPLE in words and job.get("resume") is None
            ),
        }
        found = super().problems(sections, hardware, ordering=ordering)
        return found + [problem for problem, is_there in refused.items() if is_there]

    def _roles(self, begun: RunDocument, argv: Argv, command: RankCommand) -> list[Process]:
        """Return the scheduler on the first node, and the servers and workers of all nodes, numbered in the order of the nodes.

        Servers and scheduler get the words of a node's first worker.
        """
        machines = begun.machines
        nodes = range(len(machines.addresses))
        places = {
            SCHEDULER: [(0, 0)],
            SERVER: [(node, 0) for node in nodes for _ in range(self.servers_per_node)],
            WORKER: [(node, local) for node in nodes for local in range(self.workers_per_node)],
        }
        arguments = [part for word in command.words for part in word.split("=", 1)]
        shared = {
            **environment(machines),
            "DMLC_PS_ROOT_URI": machines.addresses[0],
            "DMLC_PS_ROOT_PORT": PORT,  # The scheduler's; all others listen on ports that the system chooses.
            "DMLC_NUM_SERVER": str(len(places[SERVER])),
            "DMLC_NUM_WORKER": str(len(places[WORKER])),
            VERSION_VARIABLE: self.mxnet_version,
            DATA_VARIABLE: shlex.join(value for name, value in pairwise(arguments) if name in DATA),
            "MICROCLUSTER_STOP_FILE": f"{begun.folder}/{STOP_FILE}",
            **command.variables,
        }
        made = []
        for order, (role, of_role) in enumerate(places.items()):
            for number, (node, local) in enumerate(of_role):
                # Each worker gets its own part of the GPUs, and more workers than GPUs share them.
                gpus = ",".join(map(str, range(local % machines.slots, machines.slots, self.workers_per_node)))
                # On PORT of the environment the store would listen in place of a port of its own.
                words = ("env", "-u", "PORT", *(word.replace(GPUS, gpus) for word in argv))
                # The address keeps the process to the private network.
                own = {"DMLC_ROLE": role, "DMLC_NODE_HOST": machines.addresses[node]}
                given = {**shared, **own, NUMBER_VARIABLE: str(number)}
                made.append(Process(role, node, words, given, order, name=f"{role} {number}"))
        return made

    def document(self, begun: RunDocument) -> RunDocument:
        """Return the run document: scheduler, servers and workers on their nodes."""
        command, machines = self.script_command(begun, {"gpus": GPUS}), begun.machines
        # Of a queue's nodes no catalog says what they have.
        expected = machines.slots if "{gpus}" in self.arguments else None
        ranks = commands(begun, command, "parameter-server", expected)
        started = {name: self._roles(begun, argv, command) for name, argv in ranks.items()}
        workers = [address for address in machines.addresses for _ in range(self.workers_per_node)]
        made = self.completed(begun, command, **started, stop_order=(WORKER, SERVER, SCHEDULER))
        decides = made.checkpoints.format == NO_CHECKPOINTS
        return made._replace(
            machines=machines._replace(ranks=workers, meeting_port=MEETING_PORT),
            logs=made.logs._replace(metrics=METRICS, unit="epoch", exit_code_decides=decides),
            checkpoints=made.checkpoints._replace(files=CHECKPOINT_FILES),
            limits=made.limits._replace(stop_grace_s=self.stop_grace_s),
        )


def _knows_logdir(job: Mapping[str, Any]) -> bool:
    """Return whether a program is told where its checkpoints belong."""
    return "{logdir}" in f"{job.get('arguments')} {job.get('environment')}"
