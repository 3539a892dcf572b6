"""A run on its launcher: its one plan, its id, and every file that stands in its folder before it starts, from the facts alone."""

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
from agent.supervise.node_samples import SAMPLE_EVERY_S
from microcluster.core.catalog.gpus import GPUS, LARGER, Gpu
from microcluster.jobs.cluster_facts import SSH_PORT, ClusterFacts, Prediction
from microcluster.jobs.finished_data import Data
from microcluster.jobs.image import is_local
from microcluster.jobs.mpirun import RSH_AGENT
from microcluster.jobs.own_program import ENVIRONMENT
from microcluster.jobs.rendering import render
from microcluster.jobs.run_plan import Argv, DataPlan, Plan, World

WATCH_EVERY_S = 5
"""Interval of the supervisor's look for checkpoints and alarms."""
SECRETS = "/run/microcluster/secrets"
"""In memory, and readable by nobody but its owner."""
STAGED = ("id", "folder", "files", "optional", "pairs", "vocabulary", "words", "content")
"""Fields of the data's plan that the staging program reads."""
CHECKPOINTS_KEPT, SPARE_BYTES = 12, 10**9
"""Five regular and five best checkpoints are kept, and two are written."""
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
    def secrets(self) -> str:
        """The folder of the program's secrets: in memory, or in the run's folder where nothing else is shared, until its job ends."""
        return f"{self.path}/{queue_nodes.SECRETS}" if self.facts.queue else SECRETS

    @property
    def sent_program(self) -> str | None:
        """Where the launcher gets the folder of the user's own program: one for all runs of the stack, each of which has a copy."""
        facts = self.facts
        return sent_folder(f"program-{facts.mark}", facts.mount_point) if facts.tree else None

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
    def plan(self) -> Plan:
        """All that is decided about the run; the agent fills in the addresses of nodes that a queue will grant."""
        logdir = f"{self.path}/logdir"
        world = replace(
            _world(self.facts),
            path=self.path,
            logdir=logdir,
            run=str(self.facts.run),
            word=self.word,
            secrets=self.secrets,
        )
        return self.facts.job.plan(world)

    def texts(self) -> dict[str, str]:
        """Return the rendered files by name; job.json stands last, because with it the run exists."""
        placed, data, ssh = self.plan.files, self.plan.data, shlex.join(self._ssh)
        files = dict(placed)
        if data:
            made = staging(data, self.facts.mount_point, self.facts.data)
            files["staging.json"] = json.dumps(made, indent=1, sort_keys=True) + "\n"
            files["bring_data.sh"] = render("bring_data.sh.j2", data=data.folder, id=data.id, ssh=ssh)
        files["send_run_folder.sh"] = render(
            "send_run_folder.sh.j2", run=self.path, ssh=ssh, files=list(placed), shared=self.shared
        )
        return {**files, document.FILE: document.text(self.document())}

    def document(self) -> dict[str, Any]:
        """Return the agent's document: what facts, job and plan hold by its names, a later one before an earlier, and what follows from them."""
        plan, facts, job, container = self.plan, self.facts, self.facts.job, self.facts.container
        expected = facts.prediction or NOT_PREDICTED
        known = {**vars(facts), **vars(expected), **vars(job), **vars(plan)}
        values = {name: known[name] for name in document.FIELDS if name in known}
        gpu, machine_type = GPUS.get(facts.gpu or "", NO_GPU), (facts.flavor or "").partition("x")[0]
        addresses = _addresses(facts)
        values |= {
            "gpu_memory_gb": LARGER.get(machine_type, gpu.memory_gb),
            "driver": int(gpu.driver),
            "predicted_s": expected.seconds,
            "addresses": addresses,
            "ranks": plan.ranks or [address for address in addresses for _ in range(facts.slots)],
            "names": [host.name for host in facts.hosts],
            "images": self.image_ids or [""] * len(facts.hosts),
            "ssh": self._ssh,
            "shared": self.shared,
            "sent_program": self.sent_program,
            "runtime": "host",
            "environment": f"{self.path}/{ENVIRONMENT}",
            "image": "none",
            "probe_port": SSH_PORT - 1,
            "data": None,
            "stage": (),
            "word": self.word,
            "files": [*plan.files, *(f"program/{name}" for name in (facts.tree.hashes if facts.tree else ()))],
            "disk_bytes": SPARE_BYTES + CHECKPOINTS_KEPT * plan.checkpoint_bytes,
            "preflight_skipped": job.preflight.removeprefix("run").removeprefix("skip: "),
            "watch_every_s": WATCH_EVERY_S,
            "sample_every_s": SAMPLE_EVERY_S,
        }
        if container:
            values |= {"runtime": "container", "environment": None, "image": container.image}
            values |= {"container": container.name, "probe_port": container.ssh_port - 1}
        if self.worlds:
            values["checkpoint_options"] = {
                **plan.checkpoint_options,
                "worlds": sorted({*plan.checkpoint_options["worlds"], *self.worlds}),
            }
        if plan.data:
            values |= {"data": plan.data.folder, "stage": self._stage()}
        return to_jsonable_python(values)

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
        python = "python3" if self.plan.data.content else "python"
        words = (
            f"docker run --rm --name microcluster-staging-{run} --label {STAGING_LABEL}={run} --net=host --runtime=runc "
            f"-e {RUN_VARIABLE}={run} -e LC_ALL=C.UTF-8 -w / --entrypoint {python}"
        )
        return [*words.split(), *mounts(disk), self.facts.container.tag, *program]


def decided(facts: ClusterFacts) -> tuple[ClusterFacts, Plan]:
    """Return the facts with the run's id and with the image of its container, and the plan from which both follow.

    The id changes with everything that makes a run another one, and with nothing else: not with max_steps, which may be raised to go
    on, and not with the hosts' addresses, which a preview does not know. The image's name stands for its Dockerfile, and with it for
    its base and for the version of what trains.
    """
    job, container = facts.job, facts.container
    if job.max_steps is not None:
        job = job.model_copy(update={"max_steps": 0})
    world = replace(_world(facts), logdir="-")
    plan = job.plan(world)
    if container:
        dockerfile = job.dockerfile(world)
        container = replace(container, dockerfile=dockerfile, tag=f"microcluster/{job.kind}:{_hash(dockerfile)}")
        container = replace(
            container, setup=_hash(json.dumps([line for line, _ in plan.setup])) if plan.setup else None
        )
    identity = {
        "config": plan.files[plan.config_file],
        "image": container.tag if container else None,
        "world": None if plan.any_world else [len(facts.hosts), facts.slots],
    }
    if plan.data:
        identity["data"] = plan.data.id
    return replace(facts, run=_hash(json.dumps(identity, sort_keys=True)), container=container), plan


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:HASH_DIGITS]


def _world(facts: ClusterFacts) -> World:
    """Return where a run would be, without what its id decides."""
    container, source = facts.container, facts.job.local_source
    trainer = container.trainer if container else None
    if container and source and is_local(container.image):
        trainer = trainer or source.stand_in  # Facts of an earlier version name no stand-in.
    return World(
        addresses=_addresses(facts),
        slots=facts.slots,
        interface=facts.interface,
        mount_point=facts.mount_point,
        image=container.image if container else None,
        trainer=trainer,
        data_id=facts.data.id if facts.data else None,
        texts=facts.texts,
        tree=facts.tree,
        ordered_gpus=facts.slots if facts.gpu else 0,
    )


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
