"""The kind ``horovod``: the user's own program, started as every rank by mpirun."""

from __future__ import annotations

import dataclasses
import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from microcluster.jobs.cluster_facts import Container, Data, SourceFile
from microcluster.jobs.horovod.section import HorovodSection
from microcluster.jobs.image import is_local
from microcluster.jobs.kind import (
    DEFAULT_MODEL_BYTES,
    AgentModule,
    Hardware,
    Image,
    ImageAdditions,
    Origin,
    Process,
    Run,
    Schedule,
    Sections,
)
from microcluster.jobs.launch.mpirun import on_every_rank
from microcluster.jobs.rendering import render

PROGRAM_FOLDER = "/opt/program"
"""Of a program that the image brings; one that the stack sends lies in the run's folder."""


@dataclass(frozen=True)
class HorovodJob:
    """One run of the user's program; the fields are the keys of the stack file.

    Attributes:
        files: the texts of the source folder.
    """

    kind: str
    max_steps: int
    script: str
    checkpoints: str
    arguments: str = ""
    resume: str | None = None
    progress: str = "json"
    files: tuple[SourceFile, ...] = ()
    stall_s: int = 900
    preflight: str = "run"
    data: Data | None = None


class Horovod:
    """See `microcluster.jobs.kind.JobKind`."""

    name = "horovod"
    runtime = "container"
    section = HorovodSection
    facts = HorovodJob
    metrics = ()
    stop_order = ("rank",)
    config_file = "program.json"
    checkpoint_files = "the files that job.checkpoints names"
    translator = None

    def defaults(self, sections: Sections, hardware: Hardware) -> Mapping[str, Origin]:
        """Return nothing: a person says what the program needs."""
        return {}

    def problems(self, sections: Sections, *, ordering: bool) -> list[str]:
        """Say which keys contradict each other."""
        job, found = sections["job"], []
        if ("commit" in job) != str(job.get("source")).startswith("https://"):
            found.append(
                "job/commit: belongs to a repository, and a repository needs one: source: https://..., commit: 40 digits"
            )
        return found

    def source(self, section: HorovodSection) -> str | None:
        """Return the folder whose texts travel with the job."""
        return None if section.commit else section.source

    def additions(self, section: HorovodSection) -> ImageAdditions:
        """Return the requirements, and the repository at its commit."""
        repository = section.source if section.commit else None
        return ImageAdditions(tuple(section.requirements), repository, section.commit)

    def describe(self, job: HorovodJob) -> str:
        """Name the script and its arguments."""
        return " ".join(filter(None, (job.script, job.arguments)))

    def image(self, container: Container) -> Image:
        """Return the base with the requirements, and with the repository where the program lies in one."""
        added = container.additions or ImageAdditions()
        inputs = {"base": container.image, "bare": not is_local(container.image)}
        text = render("horovod/Dockerfile", **inputs, **dataclasses.asdict(added))
        return Image(text, "the user's own program", PROGRAM_FOLDER if added.repository else None)

    def data(self, job: HorovodJob, mount_point: str) -> None:
        """Return None: the program brings its data itself."""

    def identity(self, job: HorovodJob, mount_point: str) -> Mapping[str, object]:
        """Return everything that the program is started with, and its texts."""
        return {"config": self._config(job)}

    def files(self, run: Run) -> Mapping[str, str]:
        """Return the program's texts, and how it is started."""
        texts = {f"program/{file.name}": file.text for file in run.job.files}
        return {self.config_file: self._config(run.job), **texts}

    def processes(self, run: Run, *, resume: bool) -> Sequence[Process]:
        """Return one mpirun on the launcher; ``{checkpoint}`` is left for the agent, which knows the newest one."""
        job: HorovodJob = run.job
        words = shlex.split(job.arguments) + (shlex.split(job.resume or "") if resume else [])
        values = {"{logdir}": f"{run.path}/logdir", "{maxSteps}": str(job.max_steps)}
        for placeholder, value in values.items():
            words = [word.replace(placeholder, value) for word in words]
        return [on_every_rank(run, (*run.wrapper, "python", f"{run.folder}/{job.script}", *words))]

    def collective(self, run: Run, argv: Sequence[str]) -> Sequence[Process]:
        """Return the same mpirun with another program."""
        return [on_every_rank(run, argv)]

    def reader(self, job: HorovodJob) -> AgentModule:
        """Return what reads JSON lines, or lines by the user's pattern."""
        return (
            AgentModule("json_lines") if job.progress == "json" else AgentModule("pattern", {"pattern": job.progress})
        )

    def checkpoints(self, job: HorovodJob) -> AgentModule:
        """Return what knows the files that the user's pattern names."""
        return AgentModule("files", {"pattern": job.checkpoints})

    def schedule(self, job: HorovodJob) -> Schedule:
        """Return what nobody knows beforehand."""
        return Schedule()

    def workload(self, job: object) -> None:
        """Return None: nobody has timed it."""

    def model_bytes(self, job: HorovodJob) -> int:
        """Return enough to see the network work."""
        return DEFAULT_MODEL_BYTES

    def checkpoint_bytes(self, job: HorovodJob) -> int:
        """Return 0: nobody knows it."""
        return 0

    def learning_rate(self, job: HorovodJob, step: int) -> None:
        """Return None: only the program knows it."""

    def warmup_steps(self, job: HorovodJob) -> int:
        """Return 0."""
        return 0

    @staticmethod
    def _config(job: HorovodJob) -> str:
        """Return what is written down of the job: each file by its hash, because the text lies beside it."""
        shown = {**dataclasses.asdict(job), "files": {file.name: file.sha256 for file in job.files}}
        left_out = ("stall_s", "preflight", "data", "max_steps")
        return json.dumps({key: shown[key] for key in shown if key not in left_out}, indent=1, sort_keys=True) + "\n"


KIND = Horovod()
