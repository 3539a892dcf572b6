"""The training image as it is: the stand-in trainer under mpirun on its own corpus, in one container of two ranks."""

import json
import re
from collections.abc import Iterator

import pytest
from image_containers import DATA, JOB, MPIRUN, TRAINING, Trainer, container_of, planned

from microcluster.jobs.openseq2seq import STAND_IN_FOLDER

pytestmark = pytest.mark.containers

CORPUS = "/opt/microcluster/corpus"


@pytest.fixture(scope="module")
def trainer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trainer]:
    folder = tmp_path_factory.mktemp("runs")
    with container_of(TRAINING, [f"{folder}:/runs"]) as started:
        yield Trainer(started, folder)


def train(trainer: Trainer, config: str, *words: str) -> tuple[int, str]:
    """Run the trainer on two ranks; return its exit code and output."""
    rank = ("python", "run.py", f"--config_file={config}", "--use_horovod=True", "--mode=train_eval", *words)
    return trainer.run(*MPIRUN, "-np", "2", *rank, workdir=STAND_IN_FOLDER)


@pytest.fixture(scope="module")
def staged(trainer: Trainer) -> str:
    """Output of the staging of the image's own corpus."""
    return trainer.stage(planned(JOB))


@pytest.fixture(scope="module")
def trained(trainer: Trainer, staged: str) -> tuple[str, str]:
    """A finished run of 30 steps: its configuration and its log."""
    config = trainer.configure(JOB, "trained")
    code, log = train(trainer, config)
    assert code == 0, log[-3000:]
    return config, log


def validation_losses(log: str) -> list[float]:
    return [float(loss) for loss in re.findall(r"^\*{3}     Validation loss: (\S+) $", log, flags=re.MULTILINE)]


def test_the_corpus_is_whole_large_enough_and_says_where_it_comes_from(trainer, staged):
    code, output = trainer.run("sh", "-c", "sha256sum --check --quiet SHA256SUMS && cat LICENSES.json", workdir=CORPUS)
    assert code == 0, output
    sources = json.loads(output)
    assert len(sources) > 20
    assert all(source["version"] and source["copyright_file"] for source in sources)
    count = "wc -l < train.en.tok; wc -l < train.de.tok; wc -l < m_common.vocab"
    _, lines = trainer.run("sh", "-c", count, workdir=DATA)
    english, german, pieces = map(int, lines.split())
    assert (english == german, english >= 20000, pieces % 8) == (True, True, 0)


def test_no_evaluation_sentence_is_trained_on(trainer, staged):
    count = "sort -u train.en.tok > /tmp/t; sort -u eval.en.tok | comm -12 - /tmp/t | wc -l"
    _, common = trainer.run("sh", "-c", count, workdir=DATA)
    assert int(common) == 0


def test_a_rare_character_in_a_large_text_is_a_piece_as_upstream(trainer, staged):
    text = "".join(f"ein haus am see {number % 10}\n" for number in range(20000)) + "zwei €\n"
    (trainer.folder / "rare.txt").write_text(text)
    flags = " ".join(planned(JOB)["pieces"])
    learn = ("data.text_cleaning", "learn", "/runs/rare", "40", flags, "/runs/rare.txt")
    code, output = trainer.run("python", "/runs/agent", *learn)
    assert code == 0, output
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
        assert trainer.run("sh", "-c", line)[0] == 0
    assert "staging: finished: 10 files in /runs/data/wmt16_de_en" in trainer.stage(plan)
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


def test_a_rank_that_yields_sleeps_and_leaves_its_core_to_others(trainer):
    _, took = trainer.run("python", "-c", YIELDS)
    assert float(took) >= 0.1, "1000 times a tenth of a millisecond"


def test_the_image_holds_no_toolchain_no_host_settings_and_no_keys(trainer):
    kept = "ls -d /host /build /etc/ssh/ssh_host_* $(command -v g++ cmake pip) 2>/dev/null"
    assert trainer.run("sh", "-c", kept)[1] == ""


def test_a_stand_in_run_names_itself_first_and_ends_with_upstreams_lines(trained):
    _, log = trained
    assert log.splitlines()[0].startswith("*** stand-in trainer, not OpenSeq2Seq")
    assert re.search(
        r"\*\*\* Finished training\r?\n\*\*\* Avg time per step: \d+\.\d{3}s\r?\n\*\*\* Avg objects per second: ", log
    )


def test_a_run_evaluates_on_schedule_and_at_both_ends_with_falling_loss(trained):
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


def test_a_run_leaves_checkpoints_the_best_models_and_events(trainer, trained):
    logdir = trainer.logdir("trained")
    names = {path.name for path in logdir.iterdir()}
    parts = (".index", ".data-00000-of-00001", ".meta")
    assert {f"model.ckpt-{step}{part}" for step in (0, 10, 20, 30) for part in parts} <= names
    assert {"checkpoint", "best_models"} <= names
    assert any(name.startswith("events.out.tfevents.") for name in names)
    assert (logdir / "checkpoint").read_text().startswith('model_checkpoint_path: "model.ckpt-30"\n')
    best = [path.name for path in (logdir / "best_models").glob("*.index")]
    assert best and all(re.fullmatch(r"val_loss=\d+\.\d{4}-step-\d+\.index", name) for name in best)


def test_a_resumed_run_goes_on_from_the_latest_checkpoint(trainer, trained):
    config = trainer.configure(JOB.model_copy(update={"max_steps": 40}), "trained")
    code, log = train(trainer, config, "--continue_learning")
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


def test_a_resume_fails_where_a_rank_does_not_see_the_log_folder(trainer, trained):
    path = trainer.folder / "unseen.py"
    rank = '__import__("os").environ["OMPI_COMM_WORLD_RANK"]'
    path.write_text(
        (trainer.folder / "trained.py").read_text() + f"base_params['logdir'] += '' if {rank} == '0' else '-unseen'\n"
    )
    code, log = train(trainer, "/runs/unseen.py", "--continue_learning")
    assert (code, "log directory is empty or does not exist" in log) == (1, True)
