"""Texar itself in the training image, on two ranks: where its source can be had, as TEXAR_SOURCE or from its repository."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from image_containers import MPIRUN, TRAINING, Trainer, container_of, mounted_source

from agent.formats.logs.texar import Reader
from microcluster.jobs import texar
from microcluster.jobs.image import LOCAL_PROGRAM_FOLDER
from microcluster.jobs.rendering import render
from microcluster.jobs.texar import SOURCE

pytestmark = [pytest.mark.containers, pytest.mark.timeout(900)]

WORDS = "/opt/microcluster/corpus/words-10000.tar"
EPOCHS = 2
JOB = SimpleNamespace(**vars(texar.CONFIGURATIONS["tiny"]), max_steps=EPOCHS)
TRAIN = "python lm_ptb_distributed.py --config language_model --data_path /runs/text 2>&1"
LINE = f"mkdir -p /runs/text && tar -C /runs/text -xf {WORDS} && PYTHONPATH=/runs {' '.join(MPIRUN)} --tag-output -np 2 {TRAIN}"


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The log of a finished training."""
    mounts = mounted_source(SOURCE, tmp_path_factory.mktemp("source"))
    folder: Path = tmp_path_factory.mktemp("runs")
    shown = {"layers": texar.LAYERS, "forget_bias": texar.FORGET_BIAS}
    (folder / "language_model.py").write_text(render("texar/language_model.py.j2", job=JOB, **shown))
    with container_of(TRAINING, [f"{folder}:/runs", *mounts]) as started:
        code, output = Trainer(started, folder).run("sh", "-c", LINE, workdir=LOCAL_PROGRAM_FOLDER)
    assert code == 0, output[-3000:]
    return output


def test_its_first_line_names_it_and_its_loss_falls_to_the_perplexity(log: str) -> None:
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
