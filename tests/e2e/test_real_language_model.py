"""Texar itself in the training image, on two ranks: where its source can be had, as TEXAR_SOURCE or from its repository."""

import os
from pathlib import Path
from types import SimpleNamespace

import docker
import docker.errors
import pytest

from agent.readers.texar import Reader
from microcluster.jobs.image import LOCAL_PROGRAM_FOLDER
from microcluster.jobs.rendering import render
from microcluster.jobs.texar import SOURCE, example
from microcluster.setup import trainer_source

pytestmark = [pytest.mark.containers, pytest.mark.timeout(900)]

IMAGE = "microcluster/training:current"
LABEL = {"microcluster.image": "training"}
WORDS = "/opt/microcluster/corpus/words-10000.tar"
EPOCHS = 2
JOB = SimpleNamespace(**vars(example.CONFIGURATIONS["tiny"]), max_steps=EPOCHS)
MPIRUN = "mpirun --allow-run-as-root --oversubscribe --tag-output -np 2"
TRAIN = f"{MPIRUN} python lm_ptb_distributed.py --config language_model --data_path /runs/text 2>&1"


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The log of a finished training."""
    said: list[str] = []
    source = trainer_source.find(SOURCE, os.environ, tmp_path_factory.mktemp("source"), said.append)
    if source is None:
        pytest.skip(said[0])
    client = docker.from_env(timeout=800)
    try:
        client.images.get(IMAGE)
    except docker.errors.ImageNotFound:
        pytest.skip(f"needs the image {IMAGE}: run `make images`")
    folder: Path = tmp_path_factory.mktemp("runs")
    shown = {"layers": example.LAYERS, "forget_bias": example.FORGET_BIAS}
    (folder / "language_model.py").write_text(render("texar/language_model.py.j2", job=JOB, **shown))
    (folder / "TRAINER").write_text(f"{source.name}\n")
    mounts = {
        str(folder): {"bind": "/runs", "mode": "rw"},
        str(source.folder): {"bind": f"{LOCAL_PROGRAM_FOLDER}/Texar", "mode": "ro"},
        str(folder / "TRAINER"): {"bind": f"{LOCAL_PROGRAM_FOLDER}/TRAINER", "mode": "ro"},
    }
    container = client.containers.run(
        IMAGE, ["sleep", "900"], detach=True, init=True, network_mode="none", volumes=mounts, labels=LABEL
    )
    try:
        line = f"mkdir -p /runs/text && tar -C /runs/text -xf {WORDS} && PYTHONPATH=/runs {TRAIN}"
        code, output = container.exec_run(["sh", "-c", line], workdir=LOCAL_PROGRAM_FOLDER)
    finally:
        container.remove(force=True)
    assert code == 0, output.decode(errors="replace")[-3000:]
    return output.decode(errors="replace")


def test_it_says_first_what_it_is_trains_to_the_test_perplexity_and_its_loss_falls(log: str) -> None:
    assert log.splitlines()[0].endswith("*** Texar 0.2.4 on TensorFlow 2.12 through our compatibility module")
    reader = Reader()
    found = [event for line in log.splitlines() for event in reader.read(line)]
    assert found[0]["event"] == "trainer"
    losses = [one["loss"] for one in found if one["event"] == "train"]
    assert len(losses) == EPOCHS
    assert losses[-1] < losses[0]
    evaluated = [one["step"] for one in found if one["event"] == "validation"]
    assert evaluated == [1, 2]
    assert [1 < one["value"] < 10_000 for one in found if one.get("name") == "test_perplexity"] == [True]
