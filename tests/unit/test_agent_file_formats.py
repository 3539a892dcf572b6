"""Checkpoints of a program of the user's own: the files and folders that a pattern names."""

import json
import os
import pickle
import struct
import time
import zipfile
from collections import Counter

import pytest

from agent.formats.checkpoints import entries, file_formats


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "saved").mkdir()
    return tmp_path


def checkpoints(folder, pattern=r"saved/model-(?P<step>\d+)\.pt"):
    return file_formats.Format(str(folder), {"pattern": pattern})


def save(folder, name, content=b"weights", age_s=100.0):
    """Write a file in place, that many seconds ago."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    moment = time.time() - age_s
    os.utime(path, (moment, moment))
    return path


def written(folder, step, content=b"weights", age_s=100.0):
    return save(folder, f"saved/model-{step}.pt", content, age_s)


def zipped(folder, name):
    """Write a zip as torch.save does; return its bytes."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("archive/data.pkl", b"weights" * 100)
    return save(folder, name, path.read_bytes()).read_bytes()


def test_the_newest_is_the_one_of_the_highest_step(folder):
    for step in (9, 100, 20):
        written(folder, step)
    (folder / "saved" / "model-final.pt").write_bytes(b"other")
    assert checkpoints(folder).newest_whole() == (100, "saved/model-100.pt")
    assert checkpoints(folder).prepare("saved/model-100.pt") == ["saved/model-100.pt"]


def test_a_file_that_is_open_to_be_written_is_not_whole_however_long_it_was_quiet(folder):
    path = folder / "saved" / "model-40.pt"
    with path.open("wb") as file:
        file.write(b"weights")
        file.flush()
        os.utime(path, (1, 1))
        assert checkpoints(folder).suspicion_of("saved/model-40.pt") == "saved/model-40.pt is being written"
        ended = checkpoints(folder)
        ended.at_work = False
        assert ended.newest_whole() == (40, "saved/model-40.pt")
    with path.open("rb"):
        assert checkpoints(folder).newest_whole() == (40, "saved/model-40.pt")


def test_a_file_that_was_renamed_into_place_is_whole_at_once(folder):
    partial = folder / "saved" / "partial"
    partial.write_bytes(b"weights")
    time.sleep(0.02)
    partial.rename(folder / "saved" / "model-30.pt")
    assert checkpoints(folder).newest_whole() == (30, "saved/model-30.pt")


def test_old_ones_are_pruned_and_what_is_gone_on_from_stays(folder):
    for step in (1, 2, 3, 4):
        written(folder, step)
    checkpoints(folder).prune("saved/model-1.pt")
    assert [step for step, _ in checkpoints(folder).found()] == [4, 3, 1]


SHARDS = r"step-(?P<step>\d+)/rank\d+\.pt"


def sharded(folder, step, ranks=4):
    for rank in range(ranks):
        save(folder, f"step-{step}/rank{rank}.pt")


def test_all_files_of_a_step_are_one_checkpoint_and_are_pruned_together(folder):
    for step in (100, 200, 300):
        sharded(folder, step)
    found = checkpoints(folder, SHARDS)
    assert found.newest_whole() == (300, "step-300/rank0.pt")
    assert found.files_of("step-300/rank0.pt") == [f"step-300/rank{rank}.pt" for rank in range(4)]
    found.prune()
    assert sorted(path.name for path in folder.glob("step-*")) == ["step-200", "step-300"]
    assert len(list(folder.glob("step-*/rank*.pt"))) == 8


def test_a_checkpoint_that_lacks_the_files_of_some_ranks_is_passed_over_for_the_one_before(folder):
    sharded(folder, 100)
    sharded(folder, 200, ranks=3)
    chosen, passed = checkpoints(folder, SHARDS).choose(lambda name: True)
    assert chosen == (100, "step-100/rank0.pt", "")
    why = "step-200/rank0.pt has 3 of the 4 files step-#/rank#.pt that the checkpoint before has"
    assert passed == {"step-200/rank0.pt": why}


def test_side_files_in_varying_number_raise_no_suspicion(folder):
    for step, samples in ((100, 8), (200, 3)):
        save(folder, f"step-{step}/model.pt")
        for number in range(samples):
            save(folder, f"step-{step}/samples/image-{number}.png")
            save(folder, f"step-{step}/loss_{number}.pt")
    assert checkpoints(folder, r"step-(?P<step>\d+)").newest_whole() == (200, "step-200")


@pytest.mark.parametrize(
    "part", ["__{}_0.distcp", "mp_rank_0{}.pt", "model-0000{}-of-00004.bin", "rng_state_{}.pth", "rank{}/model.pt"]
)
def test_a_part_of_a_rank_that_is_missing_is_a_suspicion(folder, part):
    for step, ranks in ((1, 4), (2, 3)):
        for rank in range(ranks):
            save(folder, f"step-{step}/{part.format(rank)}")
        if part.endswith("distcp"):
            save(folder, f"step-{step}/.metadata", b"other ranks")
    assert checkpoints(folder, r"step-(?P<step>\d+)").newest_whole() == (1, "step-1")


def test_a_best_model_beside_some_checkpoints_does_not_make_the_others_incomplete(folder):
    save(folder, "model-100.pt")
    save(folder, "best-100.pt")
    save(folder, "model-200.pt")
    assert checkpoints(folder, r"(model|best)-(?P<step>\d+)\.pt").newest_whole() == (200, "model-200.pt")


def test_a_bare_name_is_found_at_any_depth_as_lightning_saves_it(folder):
    save(folder, "lightning_logs/version_0/checkpoints/epoch=0-step=50.ckpt")
    save(folder, "lightning_logs/version_1/checkpoints/epoch=1-step=100.ckpt")
    found = checkpoints(folder, r"epoch=\d+-step=(?P<step>\d+)\.ckpt")
    assert found.newest_whole() == (100, "lightning_logs/version_1/checkpoints/epoch=1-step=100.ckpt")


def hugging_face(folder, step, state=None):
    """Save as Hugging Face's Trainer does, whose last file is its state."""
    for name in ("config.json", "model.safetensors", "training_args.bin", "optimizer.pt", "rng_state_0.pth"):
        save(folder, f"checkpoint-{step}/{name}", tensors(16) if name == "model.safetensors" else b"content")
    if state is not None:
        save(folder, f"checkpoint-{step}/trainer_state.json", state)


def tensors(size):
    """Return a file of safetensors with one tensor of so many bytes."""
    header = json.dumps({"w": {"dtype": "F32", "shape": [size // 4], "data_offsets": [0, size]}}).encode()
    return struct.pack("<Q", len(header)) + header + bytes(size)


FOLDERS = r"checkpoint-(?P<step>\d+)"
CKPT = r"ckpt-(?P<step>\d+)"


@pytest.mark.parametrize(
    ("state", "said"), [(None, " lacks checkpoint-100/trainer_state.json"), (b'{"global_step": 1', "is torn: ")]
)
def test_a_folder_that_matches_is_a_checkpoint_with_all_in_it_once_the_trainers_state_is_there(folder, state, said):
    hugging_face(folder, 50, b'{"global_step": 50}')
    hugging_face(folder, 100, state)
    found = checkpoints(folder, FOLDERS)
    assert found.newest_whole() == (50, "checkpoint-50")
    assert said in found.suspicion_of("checkpoint-100")
    save(folder, "checkpoint-100/trainer_state.json", b'{"global_step": 100}')
    assert found.newest_whole() == (100, "checkpoint-100")
    assert len(found.files_of("checkpoint-100")) == 6


def test_random_states_of_a_program_of_its_own_raise_no_suspicion(folder):
    for name in ("model.npz", "rng_state.pt", "rng_state_0.pth", "optimizer.pt"):
        zipped(folder, f"checkpoint-10/{name}")
    assert checkpoints(folder, FOLDERS).newest_whole() == (10, "checkpoint-10")


def test_tensors_that_are_cut_short_make_the_whole_folder_torn(folder):
    hugging_face(folder, 50, b"{}")
    save(folder, "checkpoint-50/model.safetensors", tensors(16)[:-1])
    assert "model.safetensors is torn" in checkpoints(folder, FOLDERS).suspicion_of("checkpoint-50")


@pytest.mark.parametrize("name", ["model-7.keras", "model-7.h5"])
def test_hdf5_that_keras_wrote_is_whole_under_each_name_and_torn_when_cut_short(folder, name):
    found = checkpoints(folder, r"model-(?P<step>\d+)\.\w+")
    content = (b"\x89HDF\r\n\x1a\n" + bytes(16) + struct.pack("<QQQ", 0, 2**64 - 1, 100)).ljust(100, b"\0")
    save(folder, name, content)
    assert found.newest_whole() == (7, name)
    save(folder, name, content[:60])
    assert found.suspicion_of(name) == name + " is torn: it has 60 bytes in place of 100"
    save(folder, name, content[:8])
    assert "is torn" in found.suspicion_of(name)


@pytest.mark.parametrize("name", ["model-7.pt", "model-7.ckpt", "model-7.npz", "model-7.keras"])
def test_a_zip_that_was_cut_short_is_torn_and_the_one_before_is_used(folder, name):
    zipped(folder, name.replace("7", "6"))
    content = zipped(folder, name)
    save(folder, name, content[:-10])
    found = checkpoints(folder, r"model-(?P<step>\d+)\..*")
    assert found.newest_whole() == (6, name.replace("7", "6"))
    assert "is torn" in found.suspicion_of(name)


def distributed(folder, step, ranks, named=4, done=True):
    for rank in ranks:
        save(folder, f"step_{step}/__{rank}_0.distcp")
    if done:
        save(folder, f"step_{step}/.metadata", pickle.dumps([f"__{rank}_0.distcp" for rank in range(named)]))


def test_a_distributed_checkpoint_is_whole_with_its_metadata_and_every_file_that_it_names(folder):
    found = checkpoints(folder, r"step_(?P<step>\d+)")
    distributed(folder, 10, range(4))
    distributed(folder, 20, range(4), done=False)
    distributed(folder, 30, range(2))
    assert found.suspicion_of("step_20") == "step_20 lacks step_20/.metadata"
    assert found.suspicion_of("step_30") == "step_30 lacks step_30/__2_0.distcp and step_30/__3_0.distcp"
    assert found.newest_whole() == (10, "step_10")


def test_a_link_that_leads_nowhere_hides_no_checkpoint(folder):
    save(folder, "ckpt-10/model.pt")
    (folder / "ckpt-10" / "config").symlink_to("/workspace/config")
    found = checkpoints(folder, CKPT)
    assert found.newest_whole() == (10, "ckpt-10")
    assert found.files_of("ckpt-10") == ["ckpt-10/config", "ckpt-10/model.pt"]
    save(folder, "ckpt-20/model.pt")
    (folder / "ckpt-20" / "base.pt").symlink_to("../ckpt-5/model.pt")
    found = checkpoints(folder, CKPT)
    assert found.newest_whole() == (10, "ckpt-10")
    assert found.suspicion_of("ckpt-20") == "ckpt-20/base.pt is a link to what is gone"


def test_a_folder_elsewhere_that_a_link_leads_to_is_a_checkpoint(folder):
    save(folder / "elsewhere", "ckpt-30/model.pt")
    logdir = folder / "logdir"
    save(logdir, "ckpt-10/model.pt")
    (logdir / "ckpt-30").symlink_to(folder / "elsewhere" / "ckpt-30")
    (logdir / "ckpt-40").symlink_to(folder)
    found = checkpoints(logdir, CKPT)
    assert found.found() == [(30, "ckpt-30"), (10, "ckpt-10")]
    assert found.files_of("ckpt-30") == ["ckpt-30/model.pt"]
    found.put_aside(found.files_of("ckpt-30"), "torn")
    (aside,) = folder.glob("logdir.torn-*")
    assert (aside / "ckpt-30").is_symlink() and (folder / "elsewhere/ckpt-30/model.pt").exists()


def counting(called, name):
    """Return a function of the system that counts how often it is called."""
    usual = getattr(os, name)
    return lambda *given, **options: called.update([name]) or usual(*given, **options)


def test_a_step_within_a_longer_number_has_pointers_too(folder):
    save(folder, "20260400.pt")
    save(folder, "latest", b"20260300.pt")
    found = checkpoints(folder, r"\d{4}(?P<step>\d{4})\.pt")
    assert found.newest_whole() == (400, "20260400.pt")
    assert found.prepare("20260400.pt") == ["20260400.pt", "latest"]
    assert (folder / "latest").read_text() == "20260400.pt"


def test_a_second_look_reads_only_what_has_changed(folder, monkeypatch):
    """Counted, not timed: of 2,000 files and ten checkpoints nothing changed."""
    for number in range(2000):
        (folder / f"part-{number % 10}").mkdir(exist_ok=True)
        (folder / f"part-{number % 10}" / f"{number}.txt").touch()
    for step in range(10):
        save(folder, f"ckpt-{step}/model.pt")
    monkeypatch.setattr(entries, "SURE_S", 0)
    found, called = checkpoints(folder, CKPT), Counter()
    for name in ("stat", "lstat", "scandir", "listdir"):
        monkeypatch.setattr(os, name, counting(called, name))
    found.newest()
    found.newest()
    called.clear()
    found.at_work = False
    for _ in range(2):
        found.newest()
        found.best_whole()
    assert (called["scandir"], called["listdir"], called["lstat"]) == (0, 0, 0)
    assert called["stat"] <= 4 * (22 + 1)
    called.clear()
    save(folder, "ckpt-11/model.pt")
    assert found.newest() == (11, "ckpt-11")
    assert called["scandir"] == 2, "the log folder and the new one"


@pytest.mark.parametrize("count", [20, 40])
def test_pruning_and_listing_look_at_each_checkpoint_once(folder, monkeypatch, count):
    for step in range(count):
        save(folder, f"ckpt-{step}/model.pt")
    found, read = checkpoints(folder, CKPT), Counter()
    usual = file_formats.flaw
    monkeypatch.setattr(file_formats, "flaw", lambda path, part: read.update([path]) or usual(path, part))
    found.prune()
    assert len(found.found()) == 2
    assert set(read.values()) == {1} and len(read) == count


@pytest.mark.parametrize("state", [b"[" * 10**5, b"\xff"], ids=["too deep", "no text"])
def test_a_file_that_no_reader_can_read_is_torn_and_ends_nothing(folder, state):
    hugging_face(folder, 50, b"{}")
    hugging_face(folder, 100, state)
    found = checkpoints(folder, FOLDERS)
    assert found.newest_whole() == (50, "checkpoint-50")
    assert "trainer_state.json is torn" in found.suspicion_of("checkpoint-100")


def test_what_cannot_be_removed_keeps_no_run_from_going_on(folder, monkeypatch):
    for step in (1, 2, 3, 4):
        written(folder, step)
    usual = os.remove
    monkeypatch.setattr(os, "remove", lambda path: os.stat("/nowhere") if "model-2" in path else usual(path))
    checkpoints(folder).prune()
    assert [step for step, _ in checkpoints(folder).found()] == [4, 3, 2]


def test_what_is_suspected_is_never_removed(folder):
    for step in (1, 2, 3):
        written(folder, step, b"")
    for step in (4, 5, 6, 7):
        written(folder, step)
    checkpoints(folder).prune()
    assert [step for step, _ in checkpoints(folder).found()] == [7, 6, 3, 2, 1]
