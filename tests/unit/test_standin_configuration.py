"""The stand-in trainer's arguments, configuration file, log lines and log folder."""

import pytest
from standin import lines
from standin.configuration import merge, parse_options, transformer_policy
from standin.main import check_logdir, latest_checkpoint


def test_merging_leaves_the_base_unchanged_in_nested_parameters_too():
    base = {"a": {"b": 1, "c": 2}, "d": 3}
    assert merge(base, {"a": {"b": 5}}) == {"a": {"b": 5, "c": 2}, "d": 3}
    assert base == {"a": {"b": 1, "c": 2}, "d": 3}


@pytest.mark.parametrize(
    "words", [["--mode=eval"], [], ["--mode=infer", "--max_steps=5"], ["--mode=infer", "--use_horovod"]]
)
def test_an_unknown_mode_or_word_ends_with_code_2(words):
    with pytest.raises(SystemExit) as ended:
        parse_options(["--config_file=x", *words])
    assert ended.value.code == 2


def test_the_words_of_a_training_and_of_a_translation_are_taken():
    train = parse_options(["--config_file=x", "--use_horovod=True", "--mode=train_eval", "--continue_learning"])
    assert (train.mode, train.continue_learning, train.logdir) == ("train_eval", True, None)
    infer = parse_options(
        ["--config_file=x", "--mode=infer", "--use_horovod=False", "--logdir=y", "--infer_output_file=z"]
    )
    assert (infer.mode, infer.logdir, infer.infer_output_file) == ("infer", "y", "z")


STEP = "*** Global step {}: ***     Train loss: {} \ntime per step = {}"
END = "*** Finished training\n"
BENCHMARK = END + "*** Avg time per step: 0.186s\n*** Avg objects per second: 12006.376"


@pytest.mark.parametrize(
    ("printed", "wanted"),
    [
        (lines.train_loss(0, 5.0417, 2.181), STEP.format(0, "5.0417", "0:00:2.181")),
        (lines.train_loss(0, 1.0, 3723.5), STEP.format(0, "1.0000", "1:02:3.500")),
        (lines.train_loss(10, float("nan"), 1.0), STEP.format(10, "nan", "0:00:1.000")),
        (
            lines.validation(4.9889, 0.122),
            "***     Validation loss: 4.9889 \n***     Eval BLUE score: 0.122",
        ),
        (lines.samples("Train ", {"Source": "a b"}), "***     Train Source[0]:     a b"),
        (lines.samples("*****EVAL ", {"Target": "c"}), "***     *****EVAL Target[0]:     c"),
        (lines.finished_training(10, 1.86, 22331.86), BENCHMARK),
        (lines.finished_training(0, 0.0, 0.0), END + "*** Not enough steps for benchmarking"),
    ],
)
def test_every_line_is_written_as_upstream_writes_it(printed, wanted):
    assert printed == wanted


def test_the_learning_rate_rises_falls_and_matches_the_published_peak():
    def rate(step):
        return transformer_policy(step, learning_rate=2.0, d_model=512, warmup_steps=8000)

    assert rate(7999) == pytest.approx(9.88e-4, rel=1e-3)
    assert rate(50000) == pytest.approx(3.95e-4, rel=1e-3)
    assert rate(100) < rate(7999) > rate(9000)


@pytest.fixture(params=["missing", "empty"])
def bare(request, tmp_path):
    folder = tmp_path / "logdir"
    if request.param == "empty":
        folder.mkdir()
    return str(folder)


@pytest.fixture
def trained(tmp_path):
    folder = tmp_path / "logdir"
    folder.mkdir()
    (folder / "checkpoint").write_text(
        'model_checkpoint_path: "model.ckpt-60"\nall_model_checkpoint_paths: "model.ckpt-60"\n'
    )
    (folder / "model.ckpt-60.index").touch()
    return str(folder)


@pytest.fixture
def littered(tmp_path):
    (tmp_path / "logdir").mkdir()
    (tmp_path / "logdir" / "job.pid").touch()
    return str(tmp_path / "logdir")


def checked(folder: str, mode: str = "train_eval", *, resume: bool = False) -> str | None:
    return check_logdir(folder, mode, resume=resume)


def test_a_bare_folder_starts_from_scratch_and_cannot_be_resumed(bare):
    assert checked(bare) is None
    with pytest.raises(OSError, match="log directory is empty or does not exist"):
        checked(bare, resume=True)


def test_a_folder_resumes_from_its_latest_checkpoint_while_its_files_exist(trained, tmp_path):
    assert checked(trained, resume=True) == f"{trained}/model.ckpt-60"
    (tmp_path / "logdir" / "model.ckpt-60.index").unlink()
    assert latest_checkpoint(trained) is None


@pytest.mark.parametrize("folder", ["trained", "littered"])
def test_a_used_folder_is_refused_without_the_flag_or_without_a_checkpoint(folder, request):
    with pytest.raises(OSError, match="Log directory is not empty"):
        checked(request.getfixturevalue(folder))
    if folder == "littered":
        with pytest.raises(OSError, match="no valid TensorFlow checkpoint"):
            checked(request.getfixturevalue(folder), resume=True)


def test_inference_needs_a_checkpoint(trained, tmp_path):
    assert checked(trained, "infer") == f"{trained}/model.ckpt-60"
    with pytest.raises(OSError, match="can't restore model"):
        checked(str(tmp_path / "absent"), "infer")


def test_a_best_model_named_by_hand_is_resumed(trained, tmp_path):
    best = tmp_path / "logdir" / "best_models"
    best.mkdir()
    (best / "val_loss=1.5-step-41.index").touch()
    (tmp_path / "logdir" / "checkpoint").write_text('model_checkpoint_path: "best_models/val_loss=1.5-step-41"\n')
    assert checked(trained, resume=True) == f"{best}/val_loss=1.5-step-41"
