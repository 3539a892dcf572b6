"""The training image as it is: the stand-in trainer under mpirun on its own corpus, in one container of two ranks."""

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import docker
import docker.errors
import pytest

from microcluster.jobs.openseq2seq import STAND_IN_FOLDER, Job
from microcluster.jobs.plan import World
from microcluster.jobs.run_spec import staging
from microcluster.remote import job as remote_job

pytestmark = pytest.mark.containers

IMAGE = "microcluster/training:current"
CORPUS, DATA = "/opt/microcluster/corpus", "/runs/data/debian_en_de"
LABEL = {"microcluster.image": "training"}
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


@dataclass(frozen=True)
class Trainer:
    """A container of the image with a folder of runs."""

    container: docker.models.containers.Container
    folder: Path

    def configure(self, job: Job, name: str) -> str:
        """Write the job's configuration, reading the corpus where it was staged."""
        (self.folder / f"{name}.py").write_text(job.configuration(DATA, f"/runs/{name}/logdir"))
        return f"/runs/{name}.py"

    def run(self, config: str, *words: str, ranks: int = 2) -> tuple[int, str]:
        """Run the trainer; return its exit code and output."""
        mpirun = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-np", str(ranks)]
        argv = [*mpirun, "python", "run.py", f"--config_file={config}", "--use_horovod=True", *words]
        code, output = self.container.exec_run(argv, workdir=STAND_IN_FOLDER)
        return code, output.decode(errors="replace")  # mpirun may cut one rank's character with another one's output.

    def logdir(self, name: str) -> Path:
        return self.folder / name / "logdir"


@pytest.fixture(scope="module")
def trainer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trainer]:
    client = docker.from_env(timeout=300)
    try:
        client.images.get(IMAGE)
    except docker.errors.ImageNotFound:
        pytest.skip(f"needs the image {IMAGE}: run `make images`")
    folder = tmp_path_factory.mktemp("runs")
    volumes = {str(folder): {"bind": "/runs", "mode": "rw"}}
    container = client.containers.run(
        IMAGE, ["sleep", "900"], detach=True, init=True, network_mode="none", volumes=volumes, labels=LABEL
    )
    yield Trainer(container, folder)
    container.remove(force=True)


def stage(trainer: Trainer, plan: dict[str, Any]) -> str:
    """Run the staging program on a plan; return what it said."""
    shutil.copytree(remote_job.AGENT, trainer.folder / "agent", dirs_exist_ok=True)
    (trainer.folder / "plan.json").write_text(json.dumps(plan))
    code, output = trainer.container.exec_run(["python", "/runs/agent", "data.staging", "/runs/plan.json"])
    assert code == 0, output.decode()
    return output.decode()


@pytest.fixture(scope="module")
def staged(trainer: Trainer) -> str:
    """What the staging of the image's own corpus said."""
    return stage(trainer, planned(JOB))


@pytest.fixture(scope="module")
def trained(trainer: Trainer, staged: str) -> tuple[str, str]:
    """A finished run of 30 steps: its configuration and its log."""
    config = trainer.configure(JOB, "trained")
    code, log = trainer.run(config, "--mode=train_eval")
    assert code == 0, log[-3000:]
    return config, log


def validation_losses(log: str) -> list[float]:
    return [float(loss) for loss in re.findall(r"^\*{3}     Validation loss: (\S+) $", log, flags=re.MULTILINE)]


def test_the_corpus_is_whole_large_enough_and_says_where_it_comes_from(trainer, staged):
    code, output = trainer.container.exec_run(
        ["sh", "-c", "sha256sum --check --quiet SHA256SUMS && cat LICENSES.json"], workdir=CORPUS
    )
    assert code == 0, output
    sources = json.loads(output)
    assert len(sources) > 20
    assert all(source["version"] and source["copyright_file"] for source in sources)
    _, lines = trainer.container.exec_run(
        ["sh", "-c", "wc -l < train.en.tok; wc -l < train.de.tok; wc -l < m_common.vocab"], workdir=DATA
    )
    english, german, pieces = map(int, lines.split())
    assert (english == german, english >= 20000, pieces % 8) == (True, True, 0)


def test_no_evaluation_sentence_is_trained_on(trainer, staged):
    count = "sort -u train.en.tok > /tmp/t; sort -u eval.en.tok | comm -12 - /tmp/t | wc -l"
    _, common = trainer.container.exec_run(["sh", "-c", count], workdir=DATA)
    assert int(common) == 0


def test_one_rare_character_in_a_large_text_gets_a_piece_of_its_own_as_upstream_has_it(trainer, staged):
    text = "".join(f"ein haus am see {number % 10}\n" for number in range(20000)) + "zwei €\n"
    (trainer.folder / "rare.txt").write_text(text)
    flags = " ".join(planned(JOB)["pieces"])
    argv = ["python", "/runs/agent", "data.text_cleaning", "learn", "/runs/rare", "40", flags, "/runs/rare.txt"]
    code, output = trainer.container.exec_run(argv)
    assert code == 0, output.decode()
    pieces = [line.split("\t")[0] for line in (trainer.folder / "rare.vocab").read_text().splitlines()]
    assert "€" in pieces


def test_the_real_recipe_makes_its_files_of_archives_of_the_real_layout(trainer):
    """The archives are tiny and of this image's sentences; the program, its tool and all its stages are the real ones."""
    plan = planned(JOB.model_copy(update={"dataset": "wmt16-en-de"}))
    plan["vocabulary"][1] = 4096
    for archive in plan["archives"]:
        archive.pop("md5", None)
        archive["address"] = f"file:///runs/archives/{archive['name']}"
    members = {(name, member) for sources in plan["texts"].values() for name, member in sources}
    for number, (name, member) in enumerate(sorted(members)):
        english = member.endswith(("en", "en.sgm"))
        source = f"{'eval' if member.endswith('.sgm') else 'train'}.{'en' if english else 'de'}"
        made = f"/runs/archives/{name}.d/{member}"
        line = f"mkdir -p $(dirname {made}); tar -xOf {CORPUS}/sentences.tar {source} > {made}"
        if member.endswith(".sgm"):
            line += f"; sed -i 's,.*,<seg id=\"{number}\">&</seg>,' {made}"
        line += f"; tar -C /runs/archives/{name}.d -czf /runs/archives/{name} ."
        assert trainer.container.exec_run(["sh", "-c", line])[0] == 0
    assert "staging: finished: 10 files in /runs/data/wmt16_de_en" in stage(trainer, plan)
    folder = trainer.folder / "data" / "wmt16_de_en"
    source, target = (
        (folder / f"train.clean.{one}.shuffled.BPE_common.32K.tok").read_text().split("\n") for one in ("en", "de")
    )
    assert len(source) == len(target) > 150_000
    vocabulary = (folder / "m_common.vocab").read_text().split("\n")
    assert [line.partition("\t")[0] for line in vocabulary[:4]] == ["<pad>", "</s>", "<s>", "<unk>"]
    pieces, known = " ".join(source).split(), {line.partition("\t")[0] for line in vocabulary}
    # One character in 2000 is too rare to be in the vocabulary, and a piece has several.
    assert sum(piece not in known for piece in pieces) < len(pieces) / 200


YIELDS = """
import ctypes, time
libc, began = ctypes.CDLL(None), time.monotonic()
for _ in range(1000):
    libc.sched_yield()
print(time.monotonic() - began)
"""


def test_a_rank_that_yields_sleeps_for_a_moment_and_leaves_its_core_to_others(trainer):
    _, took = trainer.container.exec_run(["python", "-c", YIELDS])
    assert float(took) >= 0.1, "1000 times a tenth of a millisecond"


def test_the_image_holds_no_toolchain_no_host_settings_and_no_keys(trainer):
    kept = "ls -d /host /build /etc/ssh/ssh_host_* $(command -v g++ cmake pip) 2>/dev/null"
    _, output = trainer.container.exec_run(["sh", "-c", kept])
    assert output == b""


def test_a_run_says_first_that_it_is_a_stand_in_and_ends_with_upstreams_lines(trained):
    _, log = trained
    assert log.splitlines()[0].startswith("*** stand-in trainer, not OpenSeq2Seq")
    assert re.search(
        r"\*\*\* Finished training\r?\n\*\*\* Avg time per step: \d+\.\d{3}s\r?\n\*\*\* Avg objects per second: ", log
    )


def test_a_run_evaluates_at_the_start_every_eval_steps_and_at_the_end_and_the_loss_falls(trained):
    _, log = trained
    losses = validation_losses(log)
    assert len(losses) == 3
    assert losses[-1] < losses[0] - 0.3


def test_at_a_step_the_evaluation_stands_before_the_loss(trained):
    _, log = trained
    assert log.index("Validation loss") < log.index("Global step 0:")
    assert re.findall(r"^\*{3} Global step (\d+): \*{3}     Train loss: \d+\.\d{4} $", log, flags=re.MULTILINE) == [
        "0",
        "10",
        "20",
    ]


def test_a_run_leaves_checkpoints_the_best_models_the_graph_and_events(trainer, trained):
    logdir = trainer.logdir("trained")
    names = {path.name for path in logdir.iterdir()}
    parts = (".index", ".data-00000-of-00001", ".meta")
    assert {f"model.ckpt-{step}{part}" for step in (0, 10, 20, 30) for part in parts} <= names
    assert {"checkpoint", "graph.pbtxt", "best_models"} <= names
    assert any(name.startswith("events.out.tfevents.") for name in names)
    assert (logdir / "checkpoint").read_text().startswith('model_checkpoint_path: "model.ckpt-30"\n')
    best = [path.name for path in (logdir / "best_models").glob("*.index")]
    assert best and all(re.fullmatch(r"val_loss=\d+\.\d{4}-step-\d+\.index", name) for name in best)


def test_a_finished_folder_is_refused_without_the_flag(trainer, trained):
    code, log = trainer.run(trained[0], "--mode=train_eval", ranks=1)
    assert code == 1
    assert "Log directory is not empty" in log


def test_a_resumed_run_goes_on_from_the_latest_checkpoint(trainer, trained):
    config = trainer.configure(JOB.model_copy(update={"max_steps": 40}), "trained")
    code, log = trainer.run(config, "--mode=train_eval", "--continue_learning")
    assert code == 0, log[-3000:]
    assert "*** Restored checkpoint from /runs/trained/logdir/model.ckpt-30. Resuming training" in log
    assert "Global step 30:" in log
    assert "Global step 0:" not in log
    assert (trainer.logdir("trained") / "model.ckpt-40.index").is_file()


def test_a_resumed_run_forgets_the_older_checkpoints_which_stay(trainer, trained):
    """As upstream; needs the run of the test before."""
    pointer = (trainer.logdir("trained") / "checkpoint").read_text()
    assert "model.ckpt-30" in pointer
    assert "model.ckpt-20" not in pointer
    assert (trainer.logdir("trained") / "model.ckpt-20.index").is_file()


def test_a_checkpoint_is_evaluated_on_every_rank(trainer, trained):
    code, log = trainer.run(trained[0], "--mode=eval")
    assert code == 0, log[-3000:]
    assert "*** Restoring from the latest checkpoint" in log
    assert re.search(r"\*\*\* Processed 16/16 batches on worker 1", log)
    assert "*** Finished evaluation" in log


def test_a_checkpoint_translates_every_line_in_order(trainer, trained):
    path = trainer.folder / "infer.py"
    infer = (trainer.folder / "trained.py").read_text().replace("eval_params = {", "infer_params = {")
    path.write_text(
        infer.replace('"extra_decode_length": 50', '"extra_decode_length": 2').replace(
            '"beam_size": 4', '"beam_size": 2'
        )
    )
    code, log = trainer.run("/runs/infer.py", "--mode=infer", "--infer_output_file=/runs/translated")
    assert code == 0, log[-3000:]
    assert len((trainer.folder / "translated").read_text().splitlines()) == 256


def test_an_evaluation_that_does_not_repeat_ends_the_run_after_one_step_as_if_all_were_well(trainer):
    config = trainer.configure(JOB, "repeat")
    path = trainer.folder / "repeat.py"
    before, evaluation = path.read_text().split("eval_params = {")
    path.write_text("eval_params = {".join([before, evaluation.replace('"repeat": True', '"repeat": False')]))
    code, log = trainer.run(config, "--mode=train_eval")
    assert code == 0, log[-3000:]
    assert "*** Finished training" in log
    assert "*** Not enough steps for benchmarking" in log
    assert sorted(file.name for file in trainer.logdir("repeat").glob("model.ckpt-*.index")) == [
        "model.ckpt-0.index",
        "model.ckpt-1.index",
    ]


def test_a_diverged_run_counts_nan_to_its_end(trainer):
    config = trainer.configure(JOB.model_copy(update={"max_steps": 12}), "nan")
    code, log = trainer.run(config, "--lr_policy_params/learning_rate=1e38", "--mode=train", ranks=1)
    assert (code, "Train loss: nan " in log, "*** Finished training" in log) == (0, True, True)


def test_a_run_with_a_killed_rank_ends_with_code_137(trainer):
    config = trainer.configure(JOB.model_copy(update={"max_steps": 100000}), "killed")
    kill = (
        "(until [ -e /runs/killed/logdir/model.ckpt-10.index ]; do sleep 0.2; done;"
        " for p in /proc/[0-9]*; do grep -qa '^python.run.py' $p/cmdline && kill -9 ${p#/proc/} && break; done) &"
    )
    trainer.container.exec_run(["sh", "-c", kill], detach=True)
    assert trainer.run(config, "--mode=train")[0] == 137


def test_a_resume_fails_where_a_rank_does_not_see_the_log_folder(trainer, trained):
    path = trainer.folder / "unseen.py"
    rank = '__import__("os").environ["OMPI_COMM_WORLD_RANK"]'
    path.write_text(
        (trainer.folder / "trained.py").read_text() + f"base_params['logdir'] += '' if {rank} == '0' else '-unseen'\n"
    )
    code, log = trainer.run("/runs/unseen.py", "--mode=train", "--continue_learning")
    assert (code, "log directory is empty or does not exist" in log) == (1, True)


def test_a_beam_finds_the_sentence_that_greedy_decoding_misses(trainer):
    script = """
import numpy
from standin.reading import beam_search
likely = {(2,): {4: .6, 5: .4}, (2, 4): {1: .3, 4: .4, 5: .3}, (2, 5): {1: 1.0}}
def step(prefixes):
    rows = [likely.get(tuple(int(n) for n in prefix), {1: 1.0}) for prefix in prefixes]
    return numpy.log([[row.get(n, 1e-9) for n in range(6)] for row in rows])
print(*[beam_search(step, 2, 1, beam=beam, alpha=0.0, limit=4) for beam in (1, 2)])
"""
    _, output = trainer.container.exec_run(["python", "-c", script], workdir=STAND_IN_FOLDER)
    assert output.decode().splitlines()[-1] == "[4, 4, 1] [5, 1]"


def test_a_wrong_literal_for_a_flag_ends_with_code_2(trainer, trained):
    argv = ["python", "run.py", f"--config_file={trained[0]}", "--use_horovod=true"]
    assert trainer.container.exec_run(argv, workdir=STAND_IN_FOLDER).exit_code == 2
