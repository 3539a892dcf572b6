"""OpenSeq2Seq itself beside the stand-in: seconds per step and memory of four ranks, in turn in one container.

    OPENSEQ2SEQ_SOURCE=FOLDER-OR-GIT-DIRECTORY python -m tools.bench.trainers        about 4 min

Both train the small model of the local stack on its own data, without evaluations. Their ratio is what counts: both ran on the
same cores a moment apart.
"""

import json
import os
import shutil
import statistics
import tempfile
from dataclasses import dataclass
from pathlib import Path

import docker
from rich.console import Console
from rich.table import Table

from agent.readers.openseq2seq import Reader
from microcluster.jobs import openseq2seq
from microcluster.jobs.openseq2seq import Job
from microcluster.jobs.plan import World
from microcluster.jobs.run_spec import staging
from microcluster.remote import job as remote_job
from microcluster.setup import trainer_source
from tools.bench.memory import sampled, with_words

IMAGE = "microcluster/training:current"
RANKS, TURNS, STEPS, WARM_UP = 4, 2, 60, 20
JOB = Job(
    kind="openseq2seq",
    model="transformer-tiny",
    maxSteps=STEPS,
    precision="fp32",
    batchPerGpu=16,
    evalSteps=1000,
    checkpointSteps=1000,
    dataset="debian-en-de",
)


@dataclass(frozen=True)
class Figures:
    """Seconds of a step, and MB (10^6 bytes) of a rank at its largest, each the median of all turns."""

    step_s: float
    rank_mb: float


def measure(console: Console) -> None:
    """Print the figures of both trainers and their ratio."""
    with tempfile.TemporaryDirectory(prefix="microcluster-trainers-") as name:
        folder = Path(name)
        source = trainer_source.find(openseq2seq.SOURCE, os.environ, folder / "source", console.print)
        if source is None:
            return
        container = _container(folder, source)
        try:
            show(console, _in_turn(container, folder))
        finally:
            container.remove(force=True)


def _in_turn(container: docker.models.containers.Container, folder: Path) -> dict[str, Figures]:
    _stage(container, folder)
    programs = {"stand-in": openseq2seq.STAND_IN_FOLDER, "OpenSeq2Seq": openseq2seq.LOCAL_PROGRAM_FOLDER}
    turns = [{name: _turn(container, folder, place) for name, place in programs.items()} for _ in range(TURNS)]
    return {
        name: Figures(*(statistics.median(values) for values in zip(*(turn[name] for turn in turns), strict=True)))
        for name in programs
    }


def _container(folder: Path, source: trainer_source.Source) -> docker.models.containers.Container:
    (folder / "TRAINER").write_text(source.name)
    mounts = {
        str(folder): {"bind": "/runs", "mode": "rw"},
        str(source.folder): {"bind": f"{openseq2seq.LOCAL_PROGRAM_FOLDER}/OpenSeq2Seq", "mode": "ro"},
        str(folder / "TRAINER"): {"bind": f"{openseq2seq.LOCAL_PROGRAM_FOLDER}/TRAINER", "mode": "ro"},
    }
    client = docker.from_env(timeout=1800)
    return client.containers.run(
        IMAGE,
        ["sleep", "3600"],
        detach=True,
        init=True,
        network_mode="none",
        volumes=mounts,
        environment=["LC_ALL=C.UTF-8"],
    )


def _stage(container: docker.models.containers.Container, folder: Path) -> None:
    shutil.copytree(remote_job.AGENT, folder / "agent", dirs_exist_ok=True)
    data = JOB.plan(World(("10.0.0.1",), 1, mount_point="/runs/data")).data
    assert data
    (folder / "plan.json").write_text(json.dumps(staging(data, "/runs/data")))
    _run(container, "/", "python", "/runs/agent", "data.staging", "/runs/plan.json")
    (folder / "config.py").write_text(JOB.configuration("/runs/data/debian_en_de", "/runs/logdir"))


def _turn(container: docker.models.containers.Container, folder: Path, place: str) -> tuple[float, float]:
    shutil.rmtree(folder / "logdir", ignore_errors=True)
    argv = ("python", "run.py", "--config_file=/runs/config.py", "--use_horovod=True", "--mode=train")
    mpirun = ("mpirun", "--allow-run-as-root", "--oversubscribe", "-np", str(RANKS))
    with sampled(lambda: with_words(*argv[:3])) as peak:
        log = _run(container, place, *mpirun, *argv)
    reader = Reader()
    found = [event for line in log.splitlines() for event in reader.read(line) if event["event"] == "time"]
    pace = [event["seconds_per_step"] for event in found if event["step"] >= WARM_UP]
    return statistics.median(pace), statistics.mean(sorted(peak.each_mb.values())[-RANKS:])


def _run(container: docker.models.containers.Container, place: str, *argv: str) -> str:
    code, output = container.exec_run(list(argv), workdir=place)
    if code:
        raise SystemExit(f"{argv[0]} in the training image ended with {code}:\n{output.decode()[-2000:]}")
    return output.decode()


def show(console: Console, found: dict[str, Figures]) -> None:
    """Print both and the ratio."""
    table = Table("four ranks, 16 pairs each", "seconds per step", "MB per rank")
    for name, figures in found.items():
        table.add_row(name, f"{figures.step_s:.3f}", f"{figures.rank_mb:.0f}")
    ours, real = found["stand-in"], found["OpenSeq2Seq"]
    table.add_row("ratio", f"{real.step_s / ours.step_s:.2f}", f"{real.rank_mb / ours.rank_mb:.2f}")
    console.print(table)
    console.print(f"load of the computer at the end: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    measure(Console())
