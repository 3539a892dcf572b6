"""Which checkpoint a run goes on from, on files as TensorFlow writes them."""

import struct

import pytest

from agent.formats.checkpoints import tensorflow
from agent.formats.checkpoints.tensorflow import Format
from tests.tiny_checkpoint import DATA, INDEX, save


@pytest.fixture
def logdir(tmp_path):
    folder = tmp_path / "logdir"
    folder.mkdir()
    return folder


def choose(logdir, readable=lambda name: True):
    return Format(str(logdir)).choose(readable)


def test_an_index_that_was_cut_anywhere_is_seen_and_whatever_byte_is_wrong_the_look_at_it_ends(logdir):
    for at in range(len(INDEX)):
        save(logdir, "model.ckpt-7", index=INDEX[:at])
        assert tensorflow.flaw(str(logdir / "model.ckpt-7")), at
        save(logdir, "model.ckpt-7", index=INDEX[:at] + bytes([INDEX[at] ^ 0x26]) + INDEX[at + 1 :])
        assert isinstance(tensorflow.flaw(str(logdir / "model.ckpt-7")), str), at


def test_an_index_that_names_no_tensor_is_no_whole_checkpoint(logdir):
    footer = bytes([0, 0, 0, 4]).ljust(tensorflow.FOOTER_BYTES - 8, b"\0") + struct.pack("<Q", tensorflow.MAGIC)
    save(logdir, "model.ckpt-7", index=bytes(16) + footer)
    assert "names no tensor" in tensorflow.flaw(str(logdir / "model.ckpt-7"))


def test_data_that_are_cut_short_are_seen_by_the_size_in_the_index(logdir):
    for cut in range(len(DATA)):
        save(logdir, "model.ckpt-7", data=DATA[:cut])
        assert f"{cut} bytes instead of 20 bytes" in tensorflow.flaw(str(logdir / "model.ckpt-7"))


def test_a_torn_checkpoint_is_passed_over_for_the_whole_one_before(logdir):
    save(logdir, "model.ckpt-10")
    save(logdir, "model.ckpt-20", data=DATA[:5])
    chosen, passed = choose(logdir)
    assert chosen == (10, "model.ckpt-10", "")
    assert "5 bytes" in passed["model.ckpt-20"]
    assert choose(logdir, lambda name: False)[0] is None, "its tensors cannot be read back"


def test_the_newest_torn_checkpoint_is_chosen_where_none_is_whole(logdir):
    save(logdir, "model.ckpt-10", data=DATA[:5])
    save(logdir, "model.ckpt-20", data=DATA[:5])
    (step, name, suspicion), passed = choose(logdir)
    assert (step, name, passed) == (20, "model.ckpt-20", {})
    assert "5 bytes" in suspicion


def test_a_best_model_that_is_newer_is_taken_and_the_framework_may_not_remove_it(logdir):
    save(logdir, "model.ckpt-100")
    save(logdir, "best_models/val_loss=1.6200-step-151")
    (step, name, _), _ = choose(logdir)
    assert (step, name) == (151, "best_models/val_loss=1.6200-step-151")
    pointer = f'model_checkpoint_path: "{name}"\nall_model_checkpoint_paths: "model.ckpt-100"\n'
    assert Format(str(logdir)).pointer(name) == pointer
    save(logdir, "model.ckpt-151")
    assert choose(logdir)[0] == (151, "model.ckpt-151", ""), "at the same step it is the regular one"


def test_pruning_keeps_the_newest_whole_ones_whatever_is_newer_and_torn(logdir):
    for step in (1, 2, 3, 4):
        save(logdir, f"model.ckpt-{step}")
    save(logdir, "model.ckpt-5", data=b"")
    Format(str(logdir)).prune()
    assert [step for step, _ in Format(str(logdir)).found()] == [5, 4, 3]
    assert Format(str(logdir)).newest_whole() == (4, "model.ckpt-4")


def test_pruning_keeps_the_best_model_the_newest_one_and_what_is_gone_on_from(logdir):
    for held in ("1.5000-step-11", "1.2000-step-21", "1.9000-step-31", "1.8000-step-41"):
        save(logdir, f"best_models/val_loss={held}")
    for step in (10, 20, 30):
        save(logdir, f"model.ckpt-{step}")
    Format(str(logdir)).prune("best_models/val_loss=1.9000-step-31")
    assert [step for step, _ in Format(str(logdir)).found()] == [41, 31, 30, 21, 20]


def test_what_a_killed_rank_was_just_writing_goes_and_nothing_else(logdir):
    save(logdir, "model.ckpt-10")
    best = "best_models/val_loss=1.0000-step-21.index.tempstate99"
    for name in ("model.ckpt-20.data-00000-of-00001.tempstate1234567890", best):
        (logdir / name).parent.mkdir(exist_ok=True)
        (logdir / name).write_bytes(b"half")
    before = sorted(path.name for path in logdir.glob("model.ckpt-10*"))
    Format(str(logdir)).prune()
    assert sorted(path.name for path in logdir.iterdir() if path.is_file()) == before
    assert list((logdir / "best_models").iterdir()) == []


@pytest.mark.parametrize(("held", "step"), [(150, 150), (151, 151), (0, 151)])
def test_the_step_of_a_best_model_is_the_one_that_it_holds(logdir, held, step):
    save(logdir, "best_models/val_loss=1.6200-step-151", data=DATA[:12] + struct.pack("<q", held))
    assert tensorflow.global_step(str(logdir / "best_models" / "val_loss=1.6200-step-151")) == held
    assert choose(logdir)[0] == (step, "best_models/val_loss=1.6200-step-151", "")
