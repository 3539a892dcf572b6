"""The user's own program: what its kinds have in common, whatever starts its ranks."""

import dataclasses
import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pydantic.alias_generators import to_camel

from microcluster.jobs.cluster_facts import Container, Data, SourceFile
from microcluster.jobs.contract import JobKind
from microcluster.jobs.image import is_ours, named_image, pythons
from microcluster.jobs.own_program import wandb
from microcluster.jobs.own_program.section import OwnProgramSection
from microcluster.jobs.rendering import render
from microcluster.jobs.values import (
    NO_CHECKPOINTS,
    AgentModule,
    Hardware,
    Image,
    ImageAdditions,
    Origin,
    Process,
    Run,
    Sections,
)

PROGRAM = "the user's own program"
NOT_OF_THE_RUN = ("stall_s", "stop_grace_s", "preflight", "data", "max_steps", "keep")
"""Fields that may change while a run stays the same one."""
LEFT_OUT = {
    "max_steps": "no progress bar and no time left; the program's own end is the run's",
    "checkpoints": "the program writes no checkpoints, and a run that dies starts again from the beginning",
    "python": "python in the image, or python3 on the machines",
}
PROGRAM_FOLDER = "/opt/program"
"""Of a program that the image brings; one that the stack sends lies in the run's folder."""


@dataclass(frozen=True)
class OwnProgramJob:
    """One run of the user's program; the fields are the keys of the stack file.

    Attributes:
        source, commit: where the program comes from; a folder without a commit.
        files: the texts of the source folder.
        python: the command of the interpreter; None for the image's python, or the machine's python3.
        keep: patterns of files, below the log folder and the program's folder, that `fab fetch` brings too.
        environment: variables of every rank.
    """

    kind: str
    script: str
    max_steps: int | None = None
    checkpoints: str | None = None
    source: str = ""
    commit: str | None = None
    requirements: tuple[str, ...] = ()
    arguments: str = ""
    resume: str | None = None
    progress: str = "json"
    files: tuple[SourceFile, ...] = ()
    python: str | None = None
    keep: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    stall_s: int = 900
    preflight: str = "run"
    data: Data | None = None


class OwnProgram(JobKind):
    """See `microcluster.jobs.contract.JobKind`; a kind adds its name, its roles, and how ranks start."""

    facts = OwnProgramJob
    exit_code_decides = True
    artifacts = (wandb.FOLDER,)
    config_file = "program.json"
    checkpoint_files = "the files that job.checkpoints names"

    def on_every_rank(self, run: Run, command: Sequence[str]) -> Sequence[Process]:
        """Return what starts ``command`` as every rank."""
        raise NotImplementedError

    def problems(self, sections: Sections, hardware: Hardware, *, ordering: bool) -> list[str]:
        """Say which keys contradict each other."""
        job, found = sections["job"], []
        if ("commit" in job) != str(job.get("source")).startswith("https://"):
            found.append(
                "job/commit: belongs to a repository, and a repository needs one: source: https://..., commit: 40 digits"
            )
        if job.get("maxSteps") is None:
            filled = [key for key in ("arguments", "resume") if "{maxSteps}" in str(job.get(key))]
            found += [f"job/{key}: {{maxSteps}} cannot be filled in, because job.maxSteps is not set" for key in filled]
        if job.get("resume") is not None and job.get("checkpoints", self._default("checkpoints")) is None:
            found.append(
                "job/resume: job.checkpoints is not set, so there is nothing to go on from; set it or leave resume out"
            )
        return found + self._lacks(str(job.get("python", "")), named_image(sections))

    @staticmethod
    def _lacks(python: str, named: str) -> list[str]:
        known = pythons(named)
        if not python or not known or python.removeprefix("/usr/bin/") in known:
            return []
        return [f"job/python: image {named} has no {python}; it has {' and '.join(known)}"]

    def defaults(self, sections: Sections, hardware: Hardware) -> Mapping[str, Origin]:
        """Say what it means that an optional key is left out."""
        return {
            f"job.{to_camel(name)}": Origin(None, f"not set: {meaning}")
            for name, meaning in LEFT_OUT.items()
            if self._default(name) is None
        }

    def not_shown(self, job: OwnProgramJob) -> Sequence[str]:
        """Say what nobody can know of the run beforehand, or by its lines."""
        bar = [] if job.max_steps else ["no progress bar (no job.maxSteps)"]
        loss = job.progress != "json" and "loss" not in re.compile(job.progress).groupindex
        return bar + (["no loss (no group loss in job.progress)"] if loss else [])

    def _default(self, name: str) -> object:
        return self.section.model_fields[name].default

    def source(self, section: OwnProgramSection) -> str | None:
        """Return the folder whose texts travel with the job."""
        return None if section.commit else section.source

    def additions(self, section: OwnProgramSection) -> ImageAdditions:
        """Return the requirements, and the repository at its commit."""
        repository = section.source if section.commit else None
        return ImageAdditions(tuple(section.requirements), repository, section.commit, section.python)

    def describe(self, job: OwnProgramJob) -> str:
        """Name the script and its arguments."""
        return " ".join(filter(None, (job.script, job.arguments)))

    def image(self, container: Container) -> Image:
        """Return the base with the requirements, and with the repository where the program lies in one."""
        added = container.additions or ImageAdditions()
        inputs = {"base": container.image, "bare": not is_ours(container.image)}
        text = render("own_program/Dockerfile", **inputs, **dataclasses.asdict(added))
        return Image(text, PROGRAM, PROGRAM_FOLDER if added.repository else None)

    def environment(self, job: OwnProgramJob, folder: str, program: str) -> str:
        """Return what makes a virtual environment with the requirements, on top of the packages that the machine brings."""
        repository = job.source if job.commit else None
        inputs = {"requirements": job.requirements, "repository": repository, "commit": job.commit, "program": program}
        return render("own_program/environment.sh.j2", folder=folder, python=job.python or "python3", **inputs)

    def imports(self, run: Run) -> tuple[str, ...]:
        """Return what imports the script's own imports by the program's interpreter."""
        variables = [f"{name}={value}" for name, value in self.variables(run).items()]
        return ("env", *variables, run.python, f"{run.path}/agent/script_imports.py", f"{run.folder}/{run.job.script}")

    def secrets(self, job: OwnProgramJob) -> tuple[str, ...]:
        """Return the key of Weights & Biases for a program that brings the package."""
        return wandb.SECRETS if wandb.is_used(job.requirements) else ()

    def identity(self, job: OwnProgramJob, mount_point: str) -> Mapping[str, object]:
        """Return everything that the program is started with, and its texts."""
        return {"config": self._config(job)}

    def files(self, run: Run) -> Mapping[str, str]:
        """Return the program's texts, and how it is started."""
        texts = {f"program/{file.name}": file.text for file in run.job.files}
        return {self.config_file: self._config(run.job), **texts}

    def processes(self, run: Run, *, resume: bool) -> Sequence[Process]:
        """Return what starts the program as every rank."""
        program = self.program(run, resume=resume)
        tracked = wandb.tracked(run, program) if wandb.is_used(run.job.requirements) else program
        return self.on_every_rank(run, (*run.wrapper, *tracked))

    def program(self, run: Run, *, resume: bool) -> tuple[str, ...]:
        """Return the argv of the program: Python, the script, its arguments; ``{checkpoint}`` and ``{step}`` are left for the agent, which knows the newest one."""
        job: OwnProgramJob = run.job
        words = shlex.split(job.arguments) + (shlex.split(job.resume or "") if resume else [])
        values = {"{logdir}": f"{run.path}/logdir", "{maxSteps}": str(job.max_steps or "")}
        for placeholder, value in values.items():
            words = [word.replace(placeholder, value) for word in words]
        return (run.python, f"{run.folder}/{job.script}", *words)

    def variables(self, run: Run) -> dict[str, str]:
        """Return what the stack file adds to every rank's environment."""
        return {name: value.replace("{logdir}", f"{run.path}/logdir") for name, value in run.job.environment.items()}

    def reader(self, job: OwnProgramJob) -> AgentModule:
        """Return what reads JSON lines, or lines by the user's pattern."""
        return (
            AgentModule("json_lines") if job.progress == "json" else AgentModule("pattern", {"pattern": job.progress})
        )

    def checkpoints(self, job: OwnProgramJob) -> AgentModule:
        """Return what knows the files that the user's pattern names."""
        return AgentModule("files", {"pattern": job.checkpoints}) if job.checkpoints else NO_CHECKPOINTS

    @staticmethod
    def _config(job: OwnProgramJob) -> str:
        """Return what is written down of the job: each file by its hash, because the text lies beside it."""
        shown = {**dataclasses.asdict(job), "files": {file.name: file.sha256 for file in job.files}}
        left_out = (*NOT_OF_THE_RUN, *(() if job.commit else ("source",)))
        return json.dumps({key: shown[key] for key in shown if key not in left_out}, indent=1, sort_keys=True) + "\n"
