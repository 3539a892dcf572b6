"""OpenSeq2Seq itself in the training image, on two ranks: where its source can be had, as OPENSEQ2SEQ_SOURCE or from its repository."""

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import docker
import docker.errors
import pytest

from agent.readers.openseq2seq import Reader
from microcluster.analysis.records import evaluations
from microcluster.jobs.openseq2seq import LOCAL_PROGRAM_FOLDER, SOURCE, Job
from microcluster.jobs.openseq2seq.translation import inference
from microcluster.jobs.plan import World
from microcluster.jobs.rendering import render
from microcluster.jobs.run_spec import staging
from microcluster.remote import job as remote_job
from microcluster.setup import trainer_source

pytestmark = pytest.mark.containers

IMAGE = "microcluster/training:current"
LABEL = {"microcluster.image": "training"}
DATA = "/runs/data/debian_en_de"
MPIRUN = ("mpirun", "--allow-run-as-root", "--oversubscribe", "--tag-output", "-np", "2")
JOB = Job(
    kind="openseq2seq",
    model="transformer-tiny",
    maxSteps=30,
    precision="fp32",
    batchPerGpu=16,
    evalSteps=20,
    checkpointSteps=10,
    dataset="debian-en-de",
)


def planned(job: Job) -> dict[str, Any]:
    """Return what the staging program reads."""
    data = job.plan(World(("10.0.0.1",), 1, mount_point="/runs/data")).data
    return staging(data, "/runs/data")


def rank(config: str) -> tuple[str, ...]:
    return ("python", "run.py", f"--config_file={config}", "--use_horovod=True", "--mode=train_eval")


@dataclass(frozen=True)
class Trainer:
    """A container of the image that sees the source, and its folder of runs."""

    container: docker.models.containers.Container
    folder: Path

    def configure(self, job: Job) -> str:
        (self.folder / "config.py").write_text(job.configuration(DATA, "/runs/logdir"))
        return "/runs/config.py"

    def run(self, *argv: str) -> tuple[int, str]:
        code, output = self.container.exec_run(list(argv), workdir=LOCAL_PROGRAM_FOLDER, environment=["LC_ALL=C.UTF-8"])
        return code, output.decode(errors="replace")


@pytest.fixture(scope="module")
def trainer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trainer]:
    said: list[str] = []
    source = trainer_source.find(SOURCE, os.environ, tmp_path_factory.mktemp("source"), said.append)
    if source is None:
        pytest.skip(said[0])
    client = docker.from_env(timeout=600)
    try:
        client.images.get(IMAGE)
    except docker.errors.ImageNotFound:
        pytest.skip(f"needs the image {IMAGE}: run `make images`")
    folder = tmp_path_factory.mktemp("runs")
    name = folder / "TRAINER"
    name.write_text(source.name)
    mounts = {
        str(folder): {"bind": "/runs", "mode": "rw"},
        str(source.folder): {"bind": f"{LOCAL_PROGRAM_FOLDER}/OpenSeq2Seq", "mode": "ro"},
        str(name): {"bind": f"{LOCAL_PROGRAM_FOLDER}/TRAINER", "mode": "ro"},
    }
    container = client.containers.run(
        IMAGE, ["sleep", "1500"], detach=True, init=True, network_mode="none", volumes=mounts, labels=LABEL
    )
    yield stage(Trainer(container, folder))
    container.remove(force=True)


def stage(trainer: Trainer) -> Trainer:
    """Make the data of the image's own corpus, with a short set to evaluate on."""
    shutil.copytree(remote_job.AGENT, trainer.folder / "agent", dirs_exist_ok=True)
    (trainer.folder / "plan.json").write_text(json.dumps(planned(JOB)))
    code, output = trainer.run("python", "/runs/agent", "data.staging", "/runs/plan.json")
    assert code == 0, output
    for language in ("en", "de"):
        assert trainer.run("sed", "-i", "49,$d", f"{DATA}/eval.{language}.tok")[0] == 0
    return trainer


@pytest.fixture(scope="module")
def log(trainer: Trainer) -> str:
    """The log of a finished training of 30 steps."""
    code, log = trainer.run(*MPIRUN, *rank(trainer.configure(JOB)))
    assert code == 0, log[-3000:]
    return log


def events(log: str) -> list[dict]:
    reader = Reader()
    return [event for line in log.splitlines() for event in reader.read(line)]


def steps(found: list[dict], event: str) -> list[int]:
    return [one["step"] for one in found if one["event"] == event]


def test_it_says_what_it_is_trains_and_its_loss_falls(log):
    found = events(log)
    assert found[0]["event"] == "trainer"
    assert found[0]["value"].startswith("OpenSeq2Seq ")
    assert steps(found, "train") == [0, 10, 20]
    finished = [*found, {"event": "checkpoint", "step": 30}, {"event": "end"}]
    evaluated = evaluations(finished, JOB.eval_steps)
    assert [one.step for one in evaluated] == [0, 20, 30]
    assert evaluated[-1].loss < evaluated[0].loss - 0.3


def test_its_checkpoints_and_best_models_bear_the_step_that_they_hold(trainer, log):
    names = "sorted(glob.glob('/runs/logdir/*.index') + glob.glob('/runs/logdir/best_models/*.index'))"
    script = (
        "import glob, re, tensorflow as tf\n"
        f"for name in {names}:\n"
        "    held = tf.train.load_variable(name[:-6], 'global_step')\n"
        "    print(held == int(re.search(r'(\\d+)\\.index$', name)[1]), name)\n"
    )
    code, output = trainer.run("sh", "-c", 'python -c "$0" 2>/dev/null', script)
    assert code == 0
    found = output.split("\n")[:-1]
    assert len(found) >= 6
    assert all(line.startswith("True ") for line in found), output


def test_it_goes_on_from_its_latest_checkpoint(trainer, log):
    config = trainer.configure(JOB.model_copy(update={"max_steps": 40}))
    code, again = trainer.run(*MPIRUN, *rank(config), "--continue_learning")
    assert code == 0, again[-3000:]
    found = events(again)
    assert (steps(found, "restored"), steps(found, "train")) == ([30], [30])
    assert (trainer.folder / "logdir" / "model.ckpt-40.index").is_file()


def test_it_translates_with_a_model_of_its_own(trainer, log):
    assert trainer.run("sh", "-c", f"head -5 {DATA}/eval.en.tok > /runs/source")[0] == 0
    vocabulary = f"{DATA}/m_common.vocab"
    added = render(
        "openseq2seq/infer_params.py.j2", vocabulary=vocabulary, source="/runs/source", batch=16, max_length=32
    )
    config = Path(trainer.folder / "config.py")
    config.write_text(config.read_text().replace('"extra_decode_length": 50', '"extra_decode_length": 2') + added)
    code, told = trainer.run(*inference("/runs/config.py", "/runs/logdir", "/runs/translated"))
    assert code == 0, told[-3000:]
    assert len((trainer.folder / "translated").read_text().split("\n")) == 6
