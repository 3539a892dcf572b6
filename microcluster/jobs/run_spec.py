"""A run on its launcher: its one plan, its id, and every file that stands in its folder before it starts, from the facts alone."""

import hashlib
import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

from agent import batch, program, spec
from agent.batch import grant
from agent.kill_run import RUN_VARIABLE, STAGING_LABEL
from core.catalog.gpus import GPUS
from microcluster.jobs import image
from microcluster.jobs.cluster_facts import SSH_PORT, ClusterFacts
from microcluster.jobs.finished_data import Data
from microcluster.jobs.mpirun import RSH_AGENT
from microcluster.jobs.own_program import ENVIRONMENT
from microcluster.jobs.plan import DataPlan, Plan, Process, World
from microcluster.jobs.rendering import render

WATCH_EVERY_S, SAMPLE_EVERY_S = 5, 20
"""How often the supervisor looks for checkpoints and alarms, and how often it asks every machine how it is."""
SECRETS = "/run/microcluster/secrets"
"""In memory, and readable by nobody but its owner."""
CHECKPOINTS_KEPT, SPARE_BYTES = 12, 10**9
"""Five regular and five best checkpoints are kept, and two are written."""
RUN_ID_DIGITS = 12


@dataclass(frozen=True)
class RunFolder:
    """One run on its launcher; ``image_digest`` is only written down, ``image_ids`` of all hosts are compared.

    ``word`` tells two trainings of one configuration apart.
    """

    facts: ClusterFacts
    image_digest: str = ""
    image_ids: tuple[str, ...] = ()
    word: str = ""

    @property
    def path(self) -> str:
        """The run's folder; its name is the run id."""
        return f"{self.facts.mount_point}/runs/{self.facts.run}"

    @property
    def secrets(self) -> str:
        """The folder of the program's secrets: in memory, or in the run's folder where nothing else is shared, until its job ends."""
        return f"{self.path}/{batch.SECRETS}" if self.facts.queue else SECRETS

    @property
    def shared(self) -> str | None:
        """Where the checkpoints lie on a drive that all hosts mount: in a folder of this stack's run alone, whoever else uses it.

        Before a queue all nodes see the run's folder itself.
        """
        facts = self.facts
        if facts.queue:
            return f"{self.path}/logdir"
        return f"{facts.shared_mount}/microcluster/{facts.mark}/{facts.run}" if facts.shared_mount else None

    @property
    def word_files(self) -> tuple[str, ...]:
        """Where the run's word stands: as long as one of them is there, the run goes on under it."""
        on_drive = (f"{self.shared}.word",) if self.facts.shared_mount else ()
        return (f"{self.path}/word", *on_drive)

    @property
    def sent_folder(self) -> str:
        """Where the launcher gets the data that come from the operator's computer."""
        assert self.plan.data
        return sent_folder(self.plan.data, self.facts.mount_point)

    @cached_property
    def plan(self) -> Plan:
        """All that is decided about the run; the agent fills in the addresses of nodes that a queue will grant."""
        facts, container = self.facts, self.facts.container
        assert facts.job
        world = World(
            addresses=self._addresses,
            slots=facts.slots,
            interface=facts.interface,
            run=str(facts.run),
            word=self.word,
            mount_point=facts.mount_point,
            image=container.image if container else None,
            trainer=container.trainer if container else None,
            data_id=facts.data.id if facts.data else None,
            texts=facts.texts,
            secrets=self.secrets,
        )
        return facts.job.plan(world)

    def texts(self) -> dict[str, str]:
        """Return the rendered files by name; job.json stands last, because with it the run exists."""
        files, data, ssh = dict(self.plan.files), self.plan.data, shlex.join(self._ssh)
        if data:
            made = staging(data, self.facts.mount_point, self.facts.data)
            files["staging.json"] = json.dumps(made, indent=1, sort_keys=True) + "\n"
            files["data.sh"] = render("data.sh.j2", data=data.folder, id=data.id, ssh=ssh)
        placed = list(self.plan.files)
        files["place.sh"] = render("place.sh.j2", run=self.path, ssh=ssh, files=placed, shared=self.shared)
        return {**files, spec.FILE: spec.text(self.document())}

    def document(self) -> dict[str, object]:
        """Return the fields of the agent's document: the plan, and the machines."""
        return {**self._of_plan(), **self._of_machines()}

    def _of_plan(self) -> dict[str, object]:
        plan, job, environment = self.plan, self.facts.job, self.plan.environment
        assert job
        return {
            "kind": job.kind,
            "max_steps": job.max_steps,
            "stall_s": job.stall_s,
            "keep": list(job.keep),
            "preflight_skipped": job.preflight.removeprefix("run").removeprefix("skip: "),
            "trainer": plan.trainer,
            "program_folder": plan.folder,
            "files": list(plan.files),
            "data": plan.data.folder if plan.data else None,
            "stage": list(self._stage()) if plan.data else [],
            "make_environment": ["sh", "-c", environment] if environment else None,
            "imports": list(plan.imports),
            "processes": _plain(plan.start),
            "resume_processes": _plain(plan.resume),
            "collective": _plain(plan.probe),
            "ranks": list(plan.ranks),
            "reader": plan.reader.name,
            "reader_options": dict(plan.reader.options),
            "checkpoints": plan.checkpoints.name,
            "checkpoint_options": dict(plan.checkpoints.options),
            "metrics": [asdict(metric) for metric in plan.metrics],
            "unit": plan.unit,
            "result": plan.result,
            "exit_code_decides": plan.exit_code_decides,
            "stop_order": list(plan.stop_order),
            "stop_grace_s": plan.stop_grace_s,
            "meeting_port": plan.meeting_port,
            "artifacts": list(plan.artifacts),
            "eval_steps": plan.expect.eval_steps,
            "print_steps": plan.expect.print_steps,
            "mixed": plan.expect.mixed,
            "model_bytes": plan.expect.model_bytes,
            "disk_bytes": SPARE_BYTES + CHECKPOINTS_KEPT * plan.expect.checkpoint_bytes,
        }

    def _of_machines(self) -> dict[str, object]:
        facts, container = self.facts, self.facts.container
        gpu, expected = GPUS.get(facts.gpu or ""), facts.prediction
        return {
            "run": facts.run,
            "word": self.word,
            "runtime": facts.runtime,
            "container": container.name if container else None,
            "environment": None if container else f"{self.path}/{ENVIRONMENT}",
            "image": container.image if container else "none",
            "image_digest": self.image_digest,
            "images": list(self.image_ids) or [self.image_digest] * len(facts.hosts),
            "addresses": list(self._addresses),
            "names": [host.name for host in facts.hosts],
            "slots": facts.slots,
            "interface": facts.interface,
            "ssh": self._ssh,
            "shared": self.shared,
            "gpu": facts.gpu,
            "gpu_memory_gb": gpu.memory_gb if gpu else 0,
            "driver": int(gpu.driver) if gpu else 0,
            "port_speed_mbps": facts.port_speed_mbps,
            "probe_port": (container.ssh_port if container else SSH_PORT) - 1,
            "predicted_s": expected.seconds if expected else None,
            "compute_s": expected.compute_s if expected else None,
            "wire_bytes": expected.wire_bytes if expected else 0,
            "per_hour": facts.per_hour,
            "guard": asdict(facts.guard) if facts.guard else None,
            "watch_every_s": WATCH_EVERY_S,
            "sample_every_s": SAMPLE_EVERY_S,
        }

    @cached_property
    def _addresses(self) -> tuple[str, ...]:
        """The nodes' private addresses; something stands for that of a node which the queue has not granted yet."""
        return tuple(host.private_address or grant.placeholder(number) for number, host in enumerate(self.facts.hosts))

    @property
    def _ssh(self) -> list[str]:
        """The words that, before an address and a line, run the line on another node."""
        return program(self.path, "batch.step", self.path) if self.facts.queue else RSH_AGENT.split()

    def _stage(self) -> tuple[str, ...]:
        """Return the argv that makes the data in a container of their own, which sees no GPU and ends with the run."""
        facts = self.facts
        assert facts.container
        return (
            *("docker", "run", "--rm", "--name", f"microcluster-staging-{facts.run}"),
            *("--label", f"{STAGING_LABEL}={facts.run}", "--net=host", "--runtime=runc"),
            *("-e", f"{RUN_VARIABLE}={facts.run}", "-e", "LC_ALL=C.UTF-8"),
            *("-v", f"{facts.mount_point}:{facts.mount_point}", "-w", "/", "--entrypoint", "python"),
            *(facts.container.tag, *program(self.path, "data.staging", f"{self.path}/staging.json")[1:]),
        )


def decided(facts: ClusterFacts) -> tuple[ClusterFacts, Plan]:
    """Return the facts with the run's id and with the image of its container, and the plan from which both follow.

    The id changes with everything that makes a run another one, and with nothing else: not with max_steps, which may be raised to go
    on, and not with the hosts' addresses, which a preview does not know. The image's name stands for its Dockerfile, and with it for
    its base and for the version of what trains.
    """
    facts.require("job", "hosts")
    assert facts.job
    plan, container = RunFolder(facts).plan, facts.container
    if container and plan.dockerfile:
        made = image.tag(facts.job.kind, plan.dockerfile)
        container = replace(container, dockerfile=plan.dockerfile, tag=made)
    identity = {
        **plan.identity,
        "image": container.tag if container else None,
        "world": [len(facts.hosts), facts.slots],
    }
    run = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:RUN_ID_DIGITS]
    return replace(facts, run=run, container=container), plan


def sent_folder(data: DataPlan, mount_point: str) -> str:
    """Return where the launcher gets the data that come from the operator's computer."""
    return f"{_work_folder(data, mount_point)}/sent"


def staging(data: DataPlan, mount_point: str, brought: Data | None = None) -> dict[str, Any]:
    """Return what the staging program reads: how the data are made or unpacked, and what they have to be in the end."""
    return {
        "id": data.id,
        "folder": data.folder,
        "work": _work_folder(data, mount_point),
        "files": list(data.files),
        "optional": list(data.optional),
        "pairs": [list(pair) for pair in data.pairs],
        "vocabulary": list(data.vocabulary) if data.vocabulary else None,
        "words": list(data.words) if data.words else None,
        **(_brought(data, brought, sent_folder(data, mount_point)) if brought else {"kind": "recipe", **data.recipe}),
    }


def _work_folder(data: DataPlan, mount_point: str) -> str:
    """Return where the launcher keeps what is only on the way to being the data."""
    return f"{mount_point}/staging/{data.id}"


def _brought(plan: DataPlan, data: Data, sent: str) -> Mapping[str, Any]:
    """Return where data come from that the user brings."""
    if not data.is_tar:
        files = [{"name": f.name, "path": f"{sent}/{f.name}", "sha256": f.sha256} for f in data.files]
        return {"kind": "files", "sent": files}
    address = data.address or f"file://{sent}/{data.files[0].name}"
    pinned = data.sha256 or (data.files[0].sha256 if data.files else None)
    archive = {"name": "finished.tar", "address": address, "most_bytes": plan.largest_bytes, "sha256": pinned}
    return {"kind": "tar", "archives": [archive]}


def _plain(processes: Sequence[Process]) -> list[dict[str, object]]:
    return [{**asdict(process), "argv": list(process.argv)} for process in processes]
