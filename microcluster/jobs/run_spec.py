"""A run on its launcher: its document, its id, and every file that stands in its folder before it starts, from the facts alone."""

import hashlib
import ipaddress
import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from pydantic_core import to_jsonable_python

from agent.kill_run import RUN_VARIABLE, STAGING_LABEL
from agent.run import document, queue_nodes
from agent.run.document import Checkpoints, Expected, Limits, Logs, Machines, Program, RunData, RunDocument
from agent.supervise.node_samples import SAMPLE_EVERY_S
from microcluster.core.catalog.gpus import GPUS, LARGER, Gpu
from microcluster.jobs.cluster_facts import SSH_PORT, ClusterFacts, Prediction
from microcluster.jobs.finished_data import Data, DataPlan
from microcluster.jobs.image import is_local
from microcluster.jobs.job_section import disk_bytes
from microcluster.jobs.mpirun import RSH_AGENT
from microcluster.jobs.ranks import DEFAULT_MODEL_BYTES, Argv
from microcluster.jobs.rendering import render

WATCH_EVERY_S = 5
"""Interval of the supervisor's look for checkpoints and alarms."""
SECRETS = "/run/microcluster/secrets"
"""In memory, and readable by nobody but its owner."""
STAGED = ("id", "folder", "files", "optional", "pairs", "vocabulary", "words", "content")
"""Fields of the data's plan that the staging program reads."""
HASH_DIGITS = 12
"""Of a run's id, and of the name of an image."""
NO_GPU = Gpu("", memory_gb=0, driver="0", precision="fp32", capability=0)
NOT_PREDICTED = Prediction(None, None, 0)


@dataclass(frozen=True)
class RunFolder:
    """One run on its launcher.

    ``image_ids`` are those of all hosts, ``word`` tells two trainings of one configuration apart, ``worlds`` are those of earlier attempts.
    """

    facts: ClusterFacts
    image_ids: tuple[str, ...] = ()
    word: str = ""
    worlds: tuple[int, ...] = ()

    @property
    def path(self) -> str:
        """The run's folder; its name is the run id."""
        return f"{self.facts.mount_point}/runs/{self.facts.run}"

    @property
    def shared(self) -> str | None:
        """The folder of the checkpoints on a drive that all hosts mount: in a folder of this stack's run alone, whoever else uses it.

        Before a queue all nodes see the run's folder itself.
        """
        facts = self.facts
        if facts.queue:
            return f"{self.path}/logdir"
        return f"{facts.shared_mount}/microcluster/{facts.mark}/{facts.run}" if facts.shared_mount else None

    @property
    def word_files(self) -> tuple[str, ...]:
        """Files with the run's word: as long as one of them is there, the run goes on under it."""
        on_drive = (f"{self.shared}.word",) if self.facts.shared_mount else ()
        return (f"{self.path}/word", *on_drive)

    @cached_property
    def data(self) -> DataPlan | None:
        """The plan of the run's data; None for a program that brings its own."""
        data = self.facts.data
        return self.facts.job.data_of(self.facts.mount_point, data.id if data else None)

    @cached_property
    def files(self) -> dict[str, str]:
        """Texts of the files that are written into the run's folder, by name: the configuration, and a program that facts of an earlier version hold."""
        folder, job = self.data.folder if self.data else "", self.facts.job
        config = job.configuration(folder, f"{self.path}/logdir", _hashes(self.facts))
        return {job.config_file: config, **{f"program/{file.name}": file.text for file in self.facts.texts}}

    @cached_property
    def document(self) -> RunDocument:
        """All that is decided about the run; the agent fills in the addresses of nodes that a queue will grant."""
        return self.facts.job.document(self._begun())

    def texts(self) -> dict[str, str]:
        """Return the rendered files by name; job.json stands last, because with it the run exists."""
        data, ssh = self.data, shlex.join(self._ssh)
        files = dict(self.files)
        if data:
            made = staging(data, self.facts.mount_point, self.facts.data)
            files["staging.json"] = json.dumps(made, indent=1, sort_keys=True) + "\n"
            files["bring_data.sh"] = render("bring_data.sh.j2", data=data.folder, id=data.id, ssh=ssh)
        files["send_run_folder.sh"] = render(
            "send_run_folder.sh.j2", run=self.path, ssh=ssh, files=list(self.files), shared=self.shared
        )
        return {**files, document.FILE: document.text(self.document)}

    def _begun(self) -> RunDocument:
        """Return the document with all that does not depend on the kind of the job, and usual values of the rest."""
        facts, job, container = self.facts, self.facts.job, self.facts.container
        expected, guard = facts.prediction or NOT_PREDICTED, facts.guard
        sent = facts.tree.hashes if facts.tree else ()
        return RunDocument(
            version=document.VERSION,
            run=facts.run,
            word=self.word,
            kind=job.kind,
            folder=self.path,
            program=Program(
                title="",
                trainer=_trainer(facts),
                folder=self.path,
                # One for all runs of the stack, each of which has a copy.
                sent_program=sent_folder(f"program-{facts.mark}", facts.mount_point) if facts.tree else None,
                files=[*self.files, *(f"program/{name}" for name in sent)],
                secrets=(),
                # In memory, or in the run's folder where nothing else is shared, until its job ends.
                secrets_folder=f"{self.path}/{queue_nodes.SECRETS}" if facts.queue else SECRETS,
                environment=None if container else f"{self.path}/environment",
                make_environment=None,
                setup=(),
                imports=(),
                processes=(),
                resume_processes=(),
                collective=(),
                stop_order=("rank",),
                artifacts=(),
            ),
            machines=self._machines(),
            logs=Logs("", {}, metrics=(), not_shown=(), unit="step", mixed=False, result=None, exit_code_decides=False),
            checkpoints=Checkpoints(
                document.NO_CHECKPOINTS,
                {"worlds": self.worlds} if self.worlds else {},
                files="",
                shared=self.shared,
                keep=job.keep,
            ),
            data=RunData(self.data.folder, self._stage()) if self.data else RunData(None, ()),
            limits=Limits(
                stall_s=job.stall_s,
                stop_grace_s=0,
                guard=vars(guard) if guard else None,
                disk_bytes=disk_bytes(),
                preflight_skipped=job.preflight.removeprefix("run").removeprefix("skip: "),
                watch_every_s=WATCH_EVERY_S,
                sample_every_s=SAMPLE_EVERY_S,
            ),
            expected=Expected(
                max_steps=job.max_steps,
                eval_steps=None,
                print_steps=0,
                predicted_s=expected.seconds,
                compute_s=expected.compute_s,
                wire_bytes=expected.wire_bytes,
                warmup_steps=0,
                schedule="Why is the program's own matter: no section of the stack file holds its schedule.",
                model_bytes=DEFAULT_MODEL_BYTES,
                per_hour=facts.per_hour,
            ),
        )

    def _machines(self) -> Machines:
        """Return the nodes, their GPUs and their network; a rank is on every slot."""
        facts, container, addresses = self.facts, self.facts.container, _addresses(self.facts)
        gpu, machine_type = GPUS.get(facts.gpu or "", NO_GPU), (facts.flavor or "").partition("x")[0]
        return Machines(
            addresses=addresses,
            names=[host.name for host in facts.hosts],
            slots=facts.slots,
            ranks=[address for address in addresses for _ in range(facts.slots)],
            interface=facts.interface,
            ssh=self._ssh,
            runtime="container" if container else "host",
            container=container.name if container else None,
            image=container.image if container else "none",
            images=self.image_ids or [""] * len(facts.hosts),
            gpu=facts.gpu,
            gpu_memory_gb=LARGER.get(machine_type, gpu.memory_gb),
            driver=int(gpu.driver),
            port_speed_mbps=facts.port_speed_mbps,
            probe_port=(container.ssh_port if container else SSH_PORT) - 1,
            meeting_port=None,
        )

    @property
    def _ssh(self) -> list[str]:
        """The words that, before an address and a line, run the line on another node."""
        return ["python3", f"{self.path}/agent", "batch.step", self.path] if self.facts.queue else RSH_AGENT.split()

    def _stage(self) -> list[str]:
        """Return the argv that makes the data, in a container of their own where there are any: it sees no GPU, and ends with the run."""
        run, disk = self.facts.run, self.facts.mount_point
        program = (f"{self.path}/agent", "data.staging", f"{self.path}/staging.json")
        if not self.facts.container:
            return ["env", f"{RUN_VARIABLE}={run}", "LC_ALL=C.UTF-8", "python3", *program]
        # A program may have a `python` of its own; sentence pieces are for that of their image.
        python = "python3" if self.data.content else "python"
        words = (
            f"docker run --rm --name microcluster-staging-{run} --label {STAGING_LABEL}={run} --net=host --runtime=runc "
            f"-e {RUN_VARIABLE}={run} -e LC_ALL=C.UTF-8 -w / --entrypoint {python}"
        )
        return [*words.split(), *mounts(disk), self.facts.container.tag, *program]


def decided(facts: ClusterFacts) -> ClusterFacts:
    """Return the facts with the run's id and with the image of its container.

    The id changes with everything that makes a run another one, and with nothing else: not with max_steps, which may be raised to go
    on, and not with the hosts' addresses, which a preview does not know. The image's name stands for its Dockerfile, and with it for
    its base and for the version of what trains.
    """
    job, container, data = facts.job, facts.container, RunFolder(facts).data
    if job.max_steps is not None:
        job = job.model_copy(update={"max_steps": 0})
    if container:
        dockerfile = job.dockerfile(container.image, _trainer(facts))
        setup = _hash(json.dumps(job.setup_lines)) if job.setup_lines else None
        tag = f"microcluster/{job.kind}:{_hash(dockerfile)}"
        container = replace(container, dockerfile=dockerfile, tag=tag, setup=setup)
    identity = {
        "config": job.configuration(data.folder if data else "", "-", _hashes(facts)),
        "image": container.tag if container else None,
        "world": None if job.any_world else [len(facts.hosts), facts.slots],
    }
    if data:
        identity["data"] = data.id
    return replace(facts, run=_hash(json.dumps(identity, sort_keys=True)), container=container)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:HASH_DIGITS]


def _trainer(facts: ClusterFacts) -> str | None:
    """Return what trains in the local training image; None in every other one."""
    container, source = facts.container, facts.job.local_source
    if container and not container.trainer and source and is_local(container.image):
        return source.stand_in  # Facts of an earlier version name no stand-in.
    return container.trainer if container else None


def _hashes(facts: ClusterFacts) -> dict[str, str] | str:
    """Return the hash of each file that travels with the job, or one of all together where there are many."""
    if facts.tree:
        return dict(facts.tree.hashes) or facts.tree.id
    return {file.name: hashlib.sha256(file.text.encode()).hexdigest() for file in facts.texts}


def _addresses(facts: ClusterFacts) -> tuple[str, ...]:
    """Return the nodes' private addresses; something stands for that of a node which the queue has not granted yet."""
    known = [_private(host.private_address) for host in facts.hosts]
    return tuple(address or queue_nodes.placeholder(number) for number, address in enumerate(known))


def _private(address: str) -> str:
    """Refuse what mpirun would take for something else: a blank in -H makes an address the program."""
    if address and not ipaddress.IPv4Address(address).is_private:
        raise ValueError(f"{address} is no private address; ranks talk over the private network only")
    return address


def mounts(mount_point: str) -> Argv:
    """Return the words that let a container see a folder of the disk as all of it, and what comes from the operator's computer."""
    sent = sent_folder("", mount_point)
    return ("-v", f"{container_disk(mount_point)}:{mount_point}", "-v", f"{sent}:{sent}:ro")


def container_disk(mount_point: str) -> str:
    """Return the folder of the machine that its containers see as the disk: what the machine itself runs and believes lies outside."""
    return f"{mount_point}/container"


def sent_folder(name: str, mount_point: str) -> str:
    """Return where the launcher gets what comes from the operator's computer, such as data by their id; containers may only read it."""
    return f"{mount_point}/sent/{name}".rstrip("/")


def staging(data: DataPlan, mount_point: str, brought: Data | None = None) -> dict[str, Any]:
    """Return what the staging program reads: how the data are made or unpacked, and what they have to be in the end."""
    source = {"kind": "recipe", **data.recipe}
    if brought:
        source = _brought(data, brought, sent_folder(data.id, mount_point))
    known = {name: getattr(data, name) for name in STAGED}
    return to_jsonable_python({**known, "work": f"{mount_point}/staging/{data.id}", **source})


def _brought(plan: DataPlan, data: Data, sent: str) -> Mapping[str, Any]:
    """Return where data come from that the user brings."""
    if data.tree:
        return {"kind": "whole", "tree": sent, "arrived": sent}
    if not data.is_tar:
        files = [{"name": f.name, "path": f"{sent}/{f.name}", "sha256": f.sha256} for f in data.files]
        return {"kind": "files", "sent": files, "arrived": sent}
    address = data.address or f"file://{sent}/{data.files[0].name}"
    archive = {"name": "finished.tar", "address": address, "most_bytes": plan.largest_bytes, "sha256": data.tar_sha256}
    return {"kind": "whole" if plan.content else "tar", "archives": [archive], "arrived": sent}
