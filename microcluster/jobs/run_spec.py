"""What stands in a run's folder on the launcher before it starts: every file and every argv, from the payload alone."""

import json
import shlex
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from agent import batch, program, spec
from agent.batch import grant
from agent.kill_run import RUN_VARIABLE, STAGING_LABEL
from core.catalog.gpus import GPUS
from microcluster.jobs import image, staging_plan
from microcluster.jobs.cluster_facts import ClusterFacts
from microcluster.jobs.contract import JobKind
from microcluster.jobs.kind import kind_of
from microcluster.jobs.launch.mpirun import RSH_AGENT
from microcluster.jobs.rendering import render
from microcluster.jobs.values import Process, Run, World

WATCH_EVERY_S, SAMPLE_EVERY_S = 5, 20
"""How often the supervisor looks for checkpoints and alarms, and how often it asks every machine how it is."""

SECRETS = "/run/microcluster/secrets"
"""In memory, and readable by nobody but its owner."""
ENVIRONMENT, OWN = "environment", "the user's own program"
SSH_PORT = 4444
"""Of the facts without a container: what measures and what the ranks meet on lies beside it."""
CHECKPOINTS_KEPT, SPARE_BYTES = 12, 10**9
"""Five regular and five best checkpoints are kept, and two are written."""


@dataclass(frozen=True)
class RunFolder:
    """One run on its launcher; ``image_digest`` is only written down, ``image_ids`` of all hosts are compared.

    ``word`` tells two trainings of one configuration apart.
    """

    payload: ClusterFacts
    image_digest: str = ""
    image_ids: tuple[str, ...] = ()
    word: str = ""

    @property
    def path(self) -> str:
        """The run's folder; its name is the run id."""
        return f"{self.payload.mount_point}/runs/{self.payload.run}"

    @property
    def world(self) -> World:
        """Every slot of every host; the agent fills in the addresses of those that a queue will grant."""
        hosts = enumerate(self.payload.hosts)
        addresses = tuple(host.private_address or grant.placeholder(number) for number, host in hosts)
        return World(addresses, self.payload.slots, self.payload.interface)

    @property
    def ssh(self) -> list[str]:
        """The words that, before an address and a line, run the line on another node."""
        if self.payload.queue:
            return program(self.path, "batch.step", self.path)
        return RSH_AGENT.split()

    @property
    def secrets(self) -> str:
        """The folder of the program's secrets: in memory, or in the run's folder where nothing else is shared, until its job ends."""
        return f"{self.path}/{batch.SECRETS}" if self.payload.queue else SECRETS

    @property
    def kind(self) -> JobKind:
        """The kind of the run's job."""
        assert self.payload.job
        return kind_of(self.payload.job.kind)

    @property
    def run(self) -> Run:
        """The run as its kind sees it."""
        wrapper = program(self.path, "rank_wrapper", f"{self.path}/ranks_ended.jsonl")
        built = image.of(self.payload.container).folder if self.payload.container else None
        return Run(
            str(self.payload.run),
            *(self.payload.job, self.world, self.path, built or f"{self.path}/program", self.payload.mount_point),
            *(tuple(wrapper), self.secrets, self.python),
            word=self.word,
        )

    @property
    def python(self) -> str:
        """The interpreter that runs the program; without a container it is that of the run's own environment."""
        return (getattr(self.payload.job, "python", None) if self.payload.container else None) or "python"

    @property
    def shared(self) -> str | None:
        """Where the checkpoints lie on a drive that all hosts mount: in a folder of this stack's run alone, whoever else uses it.

        Before a queue all nodes see the run's folder itself.
        """
        facts = self.payload
        if facts.queue:
            return f"{self.path}/logdir"
        return f"{facts.shared_mount}/microcluster/{facts.mark}/{facts.run}" if facts.shared_mount else None

    @property
    def word_files(self) -> tuple[str, ...]:
        """Where the run's word stands: as long as one of them is there, the run goes on under it."""
        on_drive = (f"{self.shared}.word",) if self.payload.shared_mount else ()
        return (f"{self.path}/word", *on_drive)

    def make_environment(self) -> tuple[str, ...] | None:
        """Return the argv that makes the run's own environment on one machine, where it runs without a container."""
        if self.payload.container:
            return None
        text = self.kind.environment(self.run.job, f"{self.path}/{ENVIRONMENT}", self.run.folder)
        return ("sh", "-c", text) if text else None

    def texts(self) -> dict[str, str]:
        """Return the rendered files by name; job.json stands last, because with it the run exists."""
        job = self.payload.job
        assert job
        files = dict(self.kind.files(self.run))
        if self.kind.data(job, self.payload.mount_point):
            plan = staging_plan.plan(job, self.payload.mount_point)
            files["staging.json"] = json.dumps(plan, indent=1, sort_keys=True) + "\n"
            files["data.sh"] = render("data.sh.j2", data=plan["folder"], id=plan["id"], ssh=shlex.join(self.ssh))
        placed = {"files": list(self.kind.files(self.run)), "shared": self.shared}
        files["place.sh"] = render("place.sh.j2", run=self.path, ssh=shlex.join(self.ssh), **placed)
        return {**files, spec.FILE: spec.text(self.values())}

    def _stage(self) -> tuple[str, ...]:
        """Return the argv that makes the data in a container of their own, which sees no GPU and ends with the run."""
        payload = self.payload
        assert payload.container
        return (
            *("docker", "run", "--rm", "--name", f"microcluster-staging-{payload.run}"),
            *("--label", f"{STAGING_LABEL}={payload.run}", "--net=host", "--runtime=runc"),
            *("-e", f"{RUN_VARIABLE}={payload.run}", "-e", "LC_ALL=C.UTF-8"),
            *("-v", f"{payload.mount_point}:{payload.mount_point}", "-w", "/", "--entrypoint", "python"),
            *(image.tag(payload.container), *program(self.path, "staging", f"{self.path}/staging.json")[1:]),
        )

    def values(self) -> dict[str, object]:
        """Return the fields of the specification."""
        payload, kind, container = self.payload, self.kind, self.payload.container
        assert payload.job
        trainer, schedule = image.of(container).program if container else OWN, kind.schedule(payload.job)
        environment = self.make_environment()
        gpu = GPUS.get(payload.gpu or "")
        reader, checkpoints = kind.reader(payload.job), kind.checkpoints(payload.job)
        plan = staging_plan.data_of(payload.job, payload.mount_point)
        port, model_bytes = (container.ssh_port if container else SSH_PORT) - 1, kind.model_bytes(payload.job)
        config = f"{self.path}/{kind.config_file}"
        every_rank = [self.python, *program(self.path, "preflight", payload.interface, config, str(model_bytes))[1:]]
        return {
            "run": payload.run,
            "word": self.word,
            "kind": kind.name,
            "max_steps": payload.job.max_steps,
            "eval_steps": schedule.eval_steps,
            "runtime": payload.runtime,
            "container": container.name if container else None,
            "environment": f"{self.path}/{ENVIRONMENT}" if not container else None,
            "make_environment": list(environment) if environment else None,
            "imports": list(kind.imports(self.run) or []),
            "image": container.image if container else "none",
            "image_digest": self.image_digest,
            "program_folder": self.run.folder,
            "trainer": trainer,
            "files": list(kind.files(self.run)),
            "addresses": list(self.world.addresses),
            "names": [host.name for host in payload.hosts],
            "mixed": schedule.mixed,
            "stall_s": payload.job.stall_s,
            **self._expected(schedule.print_steps),
            "watch_every_s": WATCH_EVERY_S,
            "sample_every_s": SAMPLE_EVERY_S,
            "slots": payload.slots,
            "ranks": list(kind.ranks(self.run)),
            "data": plan.folder if plan else None,
            "stage": list(self._stage()) if plan else [],
            "ssh": self.ssh,
            "meeting_port": kind.meeting_port,
            "preflight_skipped": payload.job.preflight.removeprefix("run").removeprefix("skip: "),
            "interface": payload.interface,
            "gpu": payload.gpu,
            "gpu_memory_gb": gpu.memory_gb if gpu else 0,
            "driver": int(gpu.driver) if gpu else 0,
            "port_speed_mbps": payload.port_speed_mbps,
            "probe_port": port,
            "images": list(self.image_ids) or [self.image_digest] * len(payload.hosts),
            "model_bytes": model_bytes,
            "disk_bytes": SPARE_BYTES + CHECKPOINTS_KEPT * kind.checkpoint_bytes(payload.job),
            "collective": _plain(kind.collective(self.run, every_rank)),
            "processes": _plain(kind.processes(self.run, resume=False)),
            "resume_processes": _plain(kind.processes(self.run, resume=True)),
            "reader": reader.name,
            "reader_options": dict(reader.options),
            "checkpoints": checkpoints.name,
            "checkpoint_options": dict(checkpoints.options),
            "shared": self.shared,
            "stop_order": list(kind.stop_order),
            "artifacts": list(kind.artifacts),
            "keep": list(payload.job.keep),
        }

    def _expected(self, print_steps: int) -> dict[str, object]:
        """Return what planning expects of a step, None where it knows nothing; the launcher knows its network better."""
        expected = self.payload.prediction
        return {
            "predicted_s": expected.seconds if expected else None,
            "compute_s": expected.compute_s if expected else None,
            "wire_bytes": expected.wire_bytes if expected else 0,
            "per_hour": self.payload.per_hour,
            "print_steps": print_steps,
        }


def _plain(processes: Sequence[Process]) -> list[dict[str, object]]:
    return [{**asdict(process), "argv": list(process.argv)} for process in processes]
