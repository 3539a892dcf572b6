"""The kind for Texar's distributed language model: its configuration, its batch, its texts, and that only ours has checkpoints."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import sample_spec
from launching import launched, run_id
from test_analysis_run_state import failure, seen

from agent.run import document
from microcluster.analysis.failure_hints import next_step
from microcluster.analysis.records import curves
from microcluster.analysis.run_state import judge
from microcluster.config import stack as config
from microcluster.display import run_text
from microcluster.jobs import image
from microcluster.jobs.texar import METRICS

LOCAL, NGC = "r.test/microcluster/training:local", "nvcr.io/nvidia/tensorflow:19.09-py3"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home whose local image holds our own programs alone, whatever `make images` has brought to this computer."""
    monkeypatch.setenv("MICROCLUSTER_HOME", str(tmp_path / "home"))


def stack(base: str = LOCAL, flavor: str = "AC1_16X120X100", nodes: int = 2, **job: object) -> config.Stack:
    cluster = {"datacenter": "lon06", "flavor": flavor, "nodes": nodes, "adminCidrs": ["198.51.100.7/32"]}
    sections = {"cluster": cluster, "container": {"image": base}, "job": {"kind": "texar", **job}}
    return config.parse("dev", {f"microcluster:{name}": one for name, one in sections.items()}, ordering=True)


def configuration(known: config.Stack) -> Any:
    """Return the module that the ranks import."""
    values: dict[str, Any] = {}
    exec(launched(known).texts()["language_model.py"], values)  # noqa: S102 - our own template
    return SimpleNamespace(**values)


def origins(known: config.Stack) -> dict[str, tuple[str, str]]:
    return {path: (value, source) for path, value, source in known.origins}


def refusal(**changes: Any) -> str:
    with pytest.raises(config.ConfigError) as refused:
        stack(**changes)
    return str(refused.value)


@pytest.mark.parametrize(
    ("name", "hidden", "length", "keep", "epochs"),
    [("small", 200, 20, 1.0, 13), ("medium", 650, 35, 0.5, 39), ("large", 1500, 35, 0.35, 55)],
)
def test_the_three_configurations_are_those_of_the_example(name, hidden, length, keep, epochs) -> None:
    made = configuration(stack(NGC, config=name))
    assert (made.hidden_size, made.num_steps, made.keep_prob, made.num_epochs) == (hidden, length, keep, epochs)
    assert made.batch_size == 20
    assert made.cell["kwargs"]["num_units"] == made.emb["dim"] == hidden
    assert made.opt["learning_rate_decay"]["kwargs"]["staircase"] is True
    if name == "small":
        rate = stack(NGC).job.planned_rate
        assert [rate(epoch) for epoch in (1, 4, 5, 6)] == [1.0, 1.0, 0.5, 0.25]


def test_values_of_the_stack_file_replace_those_of_the_configuration() -> None:
    made = configuration(stack(hiddenSize=32, learningRate=0.5, maxSteps=3, globalBatch=40))
    assert (made.hidden_size, made.num_epochs, made.batch_size) == (32, 3, 40)
    assert made.opt["optimizer"]["kwargs"]["learning_rate"] == 0.5


@pytest.mark.parametrize(
    ("wanted", "batch"),
    [({"nodes": 1, "flavor": "AC1_8X60X100"}, 20), ({"nodes": 1}, 20), ({}, 20), ({"nodes": 4, "globalBatch": 64}, 64)],
)
def test_more_than_four_ranks_need_a_larger_batch(wanted, batch) -> None:
    assert stack(**wanted).job.global_batch == batch


@pytest.mark.parametrize(("batch", "longest"), [(1024, 71), (4096, 17)])
def test_an_epoch_too_short_is_refused_with_the_longest_possible_sequence(batch, longest) -> None:
    """It divides by a tenth of an epoch's steps (``epoch_size // 10``), and its reader refuses a text without a step."""
    assert stack(NGC, globalBatch=batch, sequenceLength=longest).job.sequence_length == longest
    assert (929589 // batch - 1) // longest >= 10
    assert (73760 // batch - 1) // longest >= 1 > (73760 // batch - 1) // (longest + 1)
    found = refusal(base=NGC, globalBatch=batch, sequenceLength=longest + 1)
    assert (
        f"job/sequenceLength: {longest + 1} words with globalBatch {batch}" in found and f"at most {longest}" in found
    )


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (
            {"nodes": 4, "globalBatch": 40},
            "job/globalBatch: 40 rows of all ranks together are 5 for each of 8 ranks",
        ),
        (
            {"nodes": 3, "globalBatch": 20},
            "job/globalBatch: 20 is the batch of all ranks together, and 6 ranks cannot share it equally",
        ),
        ({"base": NGC, "trainer": "stand-in"}, "job/trainer: only the local training image"),
        ({"base": NGC, "dataset": "debian-en"}, "job/dataset: only the local training image"),
        ({"base": "nvcr.io/nvidia/tensorflow:19.05-py3"}, f"use {NGC}"),
        ({"config": "huge"}, "job/config: 'huge'"),
        ({"keepProb": 0}, "job/keepProb: "),
        ({"learningRate": "0.1"}, "job/learningRate: "),
        ({"hiddenSiz": 3}, "job/hiddenSiz: unknown key; did you mean 'hiddenSize'?"),
    ],
)
def test_a_bad_value_is_named(changes: dict[str, Any], expected: str) -> None:
    assert expected in refusal(**changes)


def test_every_rank_finds_configuration_and_texts_in_the_runs_folder() -> None:
    folder = launched(stack(NGC))
    (process,) = folder.document.program.processes
    command = " ".join(process.argv)
    assert "env PYTHONPATH=/data/runs/abcdef012345 python lm_ptb_distributed.py" in command
    assert command.endswith("--config language_model --data_path /data/ptb")
    assert process.argv[0] == "mpirun"
    assert folder.document.program.folder == "/opt/texar/examples/distributed_gpu"
    written = json.loads(folder.texts()["job.json"])
    assert "language_model.py" in written["program"]["files"], "placed on every node"
    assert written["checkpoints"]["format"] == "none"


def test_our_own_program_gets_its_checkpoint_folder_and_resumes_by_itself() -> None:
    folder = launched(stack())
    (first,), (again,) = (folder.document.program.processes, folder.document.program.resume_processes)
    assert first.argv[-2:] == ("--checkpoint_dir", "/data/runs/abcdef012345/logdir")
    assert first == again
    assert folder.document.checkpoints.format == "tensorflow"


def test_the_image_has_texar_at_one_commit_or_our_program_locally() -> None:
    real, local = (launched(stack(base)) for base in (NGC, LOCAL))
    text = real.facts.container.dockerfile
    assert "texar==0.2.4" in text and "--detach 0cce879591833a46ab844a9d5565383b270f1b15" in text
    assert "pip" not in local.facts.container.dockerfile
    assert (real.document.program.trainer, local.document.program.trainer) == ("Texar 0.2.4", "stand-in 0.1.0")


@pytest.fixture
def held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Texar in the local image, as `make images` writes it down."""
    monkeypatch.setenv("MICROCLUSTER_HOME", str(tmp_path))
    fact = tmp_path / image.TRAINER_FILE
    fact.parent.mkdir(parents=True)
    fact.write_text("OpenSeq2Seq 8681d381\nTexar 0.2.4\n")


@pytest.mark.usefixtures("held")
def test_texar_trains_in_its_local_image_on_a_long_enough_text() -> None:
    folder = launched(stack())
    assert (folder.document.program.trainer, folder.document.checkpoints.format) == ("Texar 0.2.4", "none")
    assert folder.document.program.folder == image.LOCAL_PROGRAM_FOLDER
    (process,) = folder.document.program.processes
    assert " ".join(process.argv).endswith(
        "python lm_ptb_distributed.py --config language_model --data_path /data/debian_en_10000"
    )
    made = json.loads(folder.texts()["staging.json"])
    assert made["words"] == ["ptb.train.txt", 10000]
    assert made["archives"][0]["address"] == "file:///opt/microcluster/corpus/words-10000.tar"
    assert "not set: Texar 0.2.4 in the local training image, which writes no" in origins(stack())["job.trainer"][1]


@pytest.mark.usefixtures("held")
def test_the_stack_file_may_choose_the_stand_in_for_another_run() -> None:
    ours = launched(stack(trainer="stand-in"))
    assert (ours.document.program.trainer, ours.facts.job.dataset) == ("stand-in 0.1.0", "debian-en")
    assert run_id(ours) != run_id(launched(stack()))
    same_text = launched(stack(trainer="stand-in", dataset="debian-en-10000"))
    assert run_id(same_text) != run_id(launched(stack()))


@pytest.mark.usefixtures("held")
def test_a_text_on_which_texar_itself_cannot_train_is_refused() -> None:
    assert "job/dataset: Texar trains on exactly 10,000 different words, and debian-en has 1,000" in refusal(
        dataset="debian-en"
    )
    assert "at most 234" in refusal(sequenceLength=235)
    assert stack(sequenceLength=235, trainer="stand-in").job.sequence_length == 235


def test_three_texts_are_placed_and_only_texar_needs_ten_thousand_words() -> None:
    real, local = (json.loads(launched(stack(base)).texts()["staging.json"]) for base in (NGC, LOCAL))
    assert real["files"] == ["ptb.train.txt", "ptb.valid.txt", "ptb.test.txt"]
    assert (real["kind"], real["words"], local["words"]) == ("tar", ["ptb.train.txt", 10000], None)
    assert real["archives"][0]["address"].startswith("https://")
    assert local["archives"][0]["address"] == "file:///opt/microcluster/corpus/words.tar"


def test_more_epochs_continue_the_run_and_other_values_make_another() -> None:
    one, longer, other = (run_id(launched(stack(**job))) for job in ({}, {"maxSteps": 99}, {"decayRate": 0.9}))
    assert one == longer != other


def test_explain_says_texar_saves_nothing_and_counts_epochs_as_steps() -> None:
    real, local = origins(stack(NGC)), origins(stack())
    assert "writes no checkpoint: a run that ends early starts over" in real["job.trainer"][1]
    assert local["job.trainer"] == (
        "stand-in",
        "the local training image holds no Texar, but our own language model, which writes checkpoints; TEXAR_SOURCE=... make "
        "images brings Texar",
    )
    assert real["job.maxSteps"] == ("13", "follows from job.config; a step is an epoch")


def epochs(*perplexities: float) -> list[dict[str, Any]]:
    """Return the events of a run, evaluated after every epoch, with its test at the end."""
    events: list[dict[str, Any]] = [{"event": "phase", "phase": "training", "t": 0.0}]
    for step, loss in enumerate(perplexities, 1):
        events.append({"event": "train", "step": step, "loss": loss, "t": 1.0})
        events.append({"event": "time", "step": step, "seconds_per_step": 5.0, "training_only": True, "t": 1.0})
        events.append({"event": "validation", "step": step, "loss": loss + 0.1, "t": 1.0})
    test = {"event": "metric", "name": "test_perplexity", "step": len(perplexities), "value": 90.0, "t": 2.0}
    return [*events, test]


def outcome(events: list[dict[str, Any]], module: str = "none", **changes: Any) -> Any:
    logs = {"metrics": list(map(document.plain, METRICS)), "unit": "epoch", "result": "test_perplexity"}
    job = sample_spec.values(max_steps=3, checkpoints=module, **logs)
    return judge(seen(job=job, events=events, **{"checkpoints": []} | changes))


def test_a_run_without_checkpoints_finishes_only_with_its_test_perplexity() -> None:
    events = epochs(6.0, 5.0, 4.0)
    ended = outcome(events)
    assert (ended.state, ended.metrics["test_perplexity"]) == ("finished", 90.0)
    assert ended.seconds_per_step == 5.0, "although an evaluation stands before each"
    assert [step for step, _ in curves(events).pace] == [1, 2, 3]
    early = outcome(events[:-1])
    assert (early.state, early.reason) == ("failed", "its log does not end with the test perplexity")
    text = run_text.headline(outcome(epochs(6.0, 5.0), alive=True, exit_code=None))
    assert "epoch 2 of 3" in text and "5.000 s/epoch" in text


def test_only_a_program_with_checkpoints_is_said_to_resume_after_failure() -> None:
    died = {"exit_code": 1, "failure": failure("rank-died", "rank 1 on gpu-0 ended")}
    assert "starts over" in next_step(outcome(epochs(6.0), **died), "texar-p100")
    assert "newest whole checkpoint" in next_step(outcome(epochs(6.0), "tensorflow", **died), "texar-local")
