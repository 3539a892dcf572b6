"""OpenSeq2Seq itself in the training image, on two ranks: where its source can be had, as OPENSEQ2SEQ_SOURCE or from its repository."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from image_containers import DATA, JOB, MPIRUN, TRAINING, Trainer, container_of, mounted_source, planned

from agent.formats.logs.openseq2seq import Reader
from microcluster.analysis.records import curves
from microcluster.jobs.image import LOCAL_PROGRAM_FOLDER
from microcluster.jobs.openseq2seq import SOURCE
from microcluster.jobs.openseq2seq_translation import inference
from microcluster.jobs.rendering import render

pytestmark = pytest.mark.containers


@pytest.fixture(scope="module")
def trainer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trainer]:
    """A container that sees the source, with the data of the image's own corpus and a short set to evaluate on."""
    mounts = mounted_source(SOURCE, tmp_path_factory.mktemp("source"))
    folder: Path = tmp_path_factory.mktemp("runs")
    with container_of(TRAINING, [f"{folder}:/runs", *mounts], {"LC_ALL": "C.UTF-8"}) as started:
        trainer = Trainer(started, folder)
        trainer.stage(planned(JOB))
        for language in ("en", "de"):
            assert trainer.run("sed", "-i", "49,$d", f"{DATA}/eval.{language}.tok")[0] == 0
        yield trainer


def run(trainer: Trainer, *argv: str) -> tuple[int, str]:
    return trainer.run(*argv, workdir=LOCAL_PROGRAM_FOLDER)


def train(trainer: Trainer, config: str, *words: str) -> tuple[int, str]:
    rank = ("python", "run.py", f"--config_file={config}", "--use_horovod=True", "--mode=train_eval")
    return run(trainer, *MPIRUN, "--tag-output", "-np", "2", *rank, *words)


@pytest.fixture(scope="module")
def log(trainer: Trainer) -> str:
    """The log of a finished training of 30 steps."""
    code, log = train(trainer, trainer.configure(JOB, "real"))
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
    evaluated = curves(finished, JOB.eval_steps).evaluations
    assert [one["step"] for one in evaluated] == [0, 20, 30]
    assert evaluated[-1]["loss"] < evaluated[0]["loss"] - 0.3


def test_its_checkpoints_and_best_models_bear_the_step_that_they_hold(trainer, log):
    names = "sorted(glob.glob('/runs/real/logdir/*.index') + glob.glob('/runs/real/logdir/best_models/*.index'))"
    script = (
        "import glob, re, tensorflow as tf\n"
        f"for name in {names}:\n"
        "    held = tf.train.load_variable(name[:-6], 'global_step')\n"
        "    print(held == int(re.search(r'(\\d+)\\.index$', name)[1]), name)\n"
    )
    code, output = run(trainer, "sh", "-c", 'python -c "$0" 2>/dev/null', script)
    assert code == 0
    found = output.split("\n")[:-1]
    assert len(found) >= 6
    assert all(line.startswith("True ") for line in found), output


def test_it_goes_on_from_its_latest_checkpoint(trainer, log):
    config = trainer.configure(JOB.model_copy(update={"max_steps": 40}), "real")
    code, again = train(trainer, config, "--continue_learning")
    assert code == 0, again[-3000:]
    found = events(again)
    assert (steps(found, "restored"), steps(found, "train")) == ([30], [30])
    assert (trainer.logdir("real") / "model.ckpt-40.index").is_file()


def test_it_translates_with_a_model_of_its_own(trainer, log):
    assert run(trainer, "sh", "-c", f"head -5 {DATA}/eval.en.tok > /runs/source")[0] == 0
    vocabulary = f"{DATA}/m_common.vocab"
    added = render(
        "openseq2seq/infer_params.py.j2", vocabulary=vocabulary, source="/runs/source", batch=16, max_length=32
    )
    config = trainer.folder / "real.py"
    config.write_text(config.read_text().replace('"extra_decode_length": 50', '"extra_decode_length": 2') + added)
    code, told = run(trainer, *inference("/runs/real.py", "/runs/real/logdir", "/runs/translated"))
    assert code == 0, told[-3000:]
    assert len((trainer.folder / "translated").read_text().split("\n")) == 6
