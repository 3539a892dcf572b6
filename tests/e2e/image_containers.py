"""Containers of our images without a network, and a folder of runs beside the trainers of the training image."""

import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import docker
import pytest

from microcluster.jobs.image import LOCAL_PROGRAM_FOLDER
from microcluster.jobs.job_section import PinnedSource
from microcluster.jobs.openseq2seq import Job
from microcluster.jobs.run_spec import staging
from microcluster.remote import job as remote_job
from microcluster.setup import trainer_source
from tests.unit.launching import transformer

TRAINING = "microcluster/training:current"
DATA = "/runs/data/debian_en_de"
MPIRUN = ("mpirun", "--allow-run-as-root", "--oversubscribe")
JOB = transformer(maxSteps=30, evalSteps=20, checkpointSteps=10)


def need(*images: str, command: str = "make images") -> None:
    """Skip where an image is missing that the command builds."""
    for image in images:
        if not docker.from_env().images.list(image):
            pytest.skip(f"needs the image {image}: run `{command}`")


@contextmanager
def container_of(
    image: str, mounts: Sequence[str] = (), environment: Mapping[str, str] | None = None
) -> Iterator[docker.models.containers.Container]:
    """Run a container of an image for as long as the block takes."""
    need(image)
    started = docker.from_env(timeout=900).containers.run(
        image,
        ["sleep", "1800"],
        detach=True,
        init=True,
        network_mode="none",
        volumes=list(mounts),
        environment=dict(environment or {}),
        labels={"microcluster.image": "training"},
    )
    try:
        yield started
    finally:
        started.remove(force=True)


def mounted_source(pinned: PinnedSource, place: Path) -> tuple[str, ...]:
    """Return the mounts of a real trainer's source, where the image would hold it; skip where it cannot be had."""
    said: list[str] = []
    source = trainer_source.find(pinned, os.environ, place, said.append)
    if source is None:
        pytest.skip(said[0])
    name = place / "TRAINER"
    name.write_text(f"{source.name}\n")
    inside = LOCAL_PROGRAM_FOLDER
    return f"{source.folder}:{inside}/{pinned.folder}:ro", f"{name}:{inside}/TRAINER:ro"


@dataclass(frozen=True)
class Trainer:
    """A container of the training image, and its folder of runs, which it sees as /runs."""

    container: docker.models.containers.Container
    folder: Path

    def configure(self, job: Job, name: str) -> str:
        """Write the configuration of a run of this name, reading the corpus where it was staged."""
        (self.folder / f"{name}.py").write_text(job.configuration(DATA, f"/runs/{name}/logdir", {}))
        return f"/runs/{name}.py"

    def logdir(self, name: str) -> Path:
        return self.folder / name / "logdir"

    def run(self, *argv: str, workdir: str = "/") -> tuple[int, str]:
        """Run a command; return its exit code and output."""
        code, output = self.container.exec_run(list(argv), workdir=workdir)
        return code, output.decode(errors="replace")  # mpirun may cut one rank's character with another one's output.

    def stage(self, plan: Mapping[str, Any]) -> str:
        """Run the staging program on a plan; return what it said."""
        shutil.copytree(remote_job.AGENT, self.folder / "agent", dirs_exist_ok=True)
        (self.folder / "plan.json").write_text(json.dumps(plan))
        code, output = self.run("python", "/runs/agent", "data.staging", "/runs/plan.json")
        assert code == 0, output
        return output


def planned(job: Job) -> dict[str, Any]:
    """Return what the staging program reads."""
    return staging(job.data_of("/runs/data", None), "/runs/data")
