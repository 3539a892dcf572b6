"""What the stand-in trainer makes of the state of its log folder, as upstream does."""

import pytest
from standin.main import check_logdir, latest_checkpoint


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


def test_a_folder_with_a_checkpoint_is_resumed_from_the_latest_as_long_as_its_files_are_there(trained, tmp_path):
    assert checked(trained, resume=True) == f"{trained}/model.ckpt-60"
    (tmp_path / "logdir" / "model.ckpt-60.index").unlink()
    assert latest_checkpoint(trained) is None


@pytest.mark.parametrize("folder", ["trained", "littered"])
def test_a_folder_with_anything_in_it_is_refused_without_the_flag_and_without_a_checkpoint_with_it(folder, request):
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
