"""Checkpoints of programs that write one file over and over, by the names that five of the most used ones give."""

import json
import os
import time

import pytest
import sample_spec
from test_agent_file_formats import save, zipped

from agent.formats.checkpoints import rewritten

NANOGPT, IMAGENET, YOLO, LIGHTNING, LATEST = (
    r"ckpt\.pt",
    r"(checkpoint|model_best)\.pth\.tar",
    r"(last|best)\.pt",
    r"last\.ckpt",
    r"latest\.pth",
)
"""The patterns for nanoGPT, PyTorch's ImageNet example, YOLO, PyTorch Lightning and OpenMMLab."""


@pytest.fixture
def run(tmp_path):
    """Return a run's folder."""
    (tmp_path / "logdir" / "weights").mkdir(parents=True)
    return tmp_path


def said(run, step, ago_s=0.0):
    """Let the log say a step so many seconds ago."""
    with (run / "progress.jsonl").open("a") as file:
        file.write(json.dumps({"event": "train", "step": step, "loss": 2.0, "t": time.time() - ago_s}) + "\n")


def states(run, pattern, *, at_work=True):
    found = rewritten.Format(str(run / "logdir"), {"pattern": pattern})
    found.records, found.at_work = str(run), at_work
    return found


def written(run, name, content=b"weights", ago_s=0.0):
    return save(run / "logdir", name, content, ago_s)


def copies(run):
    """Return {step: {path: content}} of the copies."""
    found = {}
    for path in sorted((run / "logdir" / rewritten.FOLDER).rglob("*")):
        if path.is_file():
            state, _, name = str(path.relative_to(run / "logdir" / rewritten.FOLDER)).partition("/")
            found.setdefault(int(state.partition("-")[0]), {})[name] = path.read_bytes()
    return found


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        (NANOGPT, ["ckpt.pt"]),
        (IMAGENET, ["checkpoint.pth.tar", "model_best.pth.tar"]),
        (YOLO, ["weights/last.pt", "weights/best.pt"]),
        (LIGHTNING, ["lightning_logs/version_0/checkpoints/last.ckpt"]),
        (LATEST, ["latest.pth"]),
    ],
)
def test_a_file_that_is_written_over_is_copied_with_the_step_before_it(run, pattern, names):
    said(run, 10, 60.0)
    said(run, 20, 30.0)
    for name in names:
        written(run, name, b"20", 20.0)
    said(run, 30, 10.0)
    found = states(run, pattern)
    assert found.is_due()
    state = found.copy()
    assert state.startswith("kept_states/20-") and copies(run) == {20: dict.fromkeys(names, b"20")}
    assert found.newest_whole() == (20, f"{state}/{names[0]}") and not found.is_due()


def test_two_whole_states_are_kept_beside_what_is_being_written(run):
    found = states(run, NANOGPT)
    for step in (10, 20, 30):
        said(run, step, 50.0 - step)
        written(run, "ckpt.pt", str(step).encode(), 49.0 - step)
        found.copy()
    assert copies(run) == {20: {"ckpt.pt": b"20"}, 30: {"ckpt.pt": b"30"}}
    with (run / "logdir" / "ckpt.pt").open("wb") as file:
        file.write(b"4")
        file.flush()
        assert not found.is_due()
        assert found.newest_whole()[0] == 30


def torn(run, **folder):
    """Copy a whole state of step 10, and let the next one be torn; return the whole one."""
    said(run, 10, 200.0)
    content = zipped(run / "logdir", "ckpt.pt")
    states(run, NANOGPT, at_work=False).copy()
    said(run, 20, 50.0)
    written(run, "ckpt.pt", content[:100], 40.0)
    return content


def test_a_torn_state_gives_way_to_the_copy_of_the_one_before(run):
    content = torn(run)
    found = states(run, NANOGPT, at_work=False)
    (step, name, suspicion), passed = found.choose(lambda name: True)
    assert (step, suspicion, found.within(name)) == (10, "", "ckpt.pt")
    assert "ckpt.pt is torn" in next(iter(passed.values()))
    assert found.prepare(name) == ["ckpt.pt"]
    assert (run / "logdir" / "ckpt.pt").read_bytes() == content
    assert [path.read_bytes() for path in run.glob("logdir.torn-*/ckpt.pt")] == [content[:100]], "nothing is removed"
    assert found.found() == [(10, name)] and not found.is_due(), "what was put back is no new state"


def test_a_torn_best_model_makes_its_state_torn_and_nothing_is_lost(run):
    said(run, 10, 200.0)
    content = zipped(run / "logdir", "checkpoint.pth.tar")
    zipped(run / "logdir", "model_best.pth.tar")
    found = states(run, IMAGENET, at_work=False)
    name = f"{found.copy()}/checkpoint.pth.tar"
    said(run, 20, 50.0)
    written(run, "checkpoint.pth.tar", content + b"newer", 40.0)
    written(run, "model_best.pth.tar", content[:100], 39.0)
    assert found.newest_whole() == (10, name)
    assert found.prepare(name) == ["checkpoint.pth.tar", "model_best.pth.tar"]
    assert (run / "logdir" / "model_best.pth.tar").read_bytes() == content
    assert [path.read_bytes() for path in run.glob("logdir.torn-*/checkpoint.pth.tar")] == [content + b"newer"]


def test_a_link_to_the_newest_file_is_followed_and_put_back_as_a_file(run):
    said(run, 1, 200.0)
    content = zipped(run / "logdir", "epoch_1.pth")
    (run / "logdir" / "latest.pth").symlink_to("epoch_1.pth")
    found = states(run, LATEST, at_work=False)
    name = f"{found.copy('')}/latest.pth"
    assert found.prepare(name) == ["epoch_1.pth", "latest.pth"], "another node needs what the link leads to"
    (run / "logdir" / "latest.pth").unlink()
    (run / "logdir" / "latest.pth").symlink_to("epoch_2.pth")
    assert found.prepare(name) == ["latest.pth"]
    assert (run / "logdir" / "latest.pth").read_bytes() == content


def test_two_states_between_two_lines_of_the_log_are_two(run):
    said(run, 10, 200.0)
    found = states(run, NANOGPT)
    for content, ago_s in ((b"first", 20.0), (b"second", 10.0)):
        written(run, "ckpt.pt", content, ago_s)
        found.copy()
    assert [step for step, _ in found.found()] == [10, 10]
    assert (run / "logdir" / found.newest_whole()[1]).read_bytes() == b"second"


def test_files_that_belong_together_are_copied_once_all_were_quiet(run):
    found = states(run, r"last/\w+\.pt")
    written(run, "last/model.pt", b"new", 5.0)
    written(run, "last/optimizer.pt", b"old", 100.0)
    assert not found.is_due()
    found.at_work = False
    assert found.is_due()


def test_without_room_for_a_copy_a_sentence_says_so(run, monkeypatch, capsys):
    sample_spec.write(run, checkpoints="rewritten", checkpoint_options={"pattern": NANOGPT})
    written(run, "ckpt.pt")
    full = rewritten.shutil.disk_usage(run)._replace(free=10)
    with monkeypatch.context() as patch:
        patch.setattr(rewritten.shutil, "disk_usage", lambda path: full)
        with pytest.raises(SystemExit, match="no room for a copy of 7 bytes"):
            rewritten.main(str(run), "")
    rewritten.main(str(run), "")
    assert capsys.readouterr().out.startswith(f"{rewritten.MARK} kept_states/0-")


def test_a_clock_of_the_disk_that_is_an_hour_behind_is_taken_into_account(run, monkeypatch):
    found, now = states(run, NANOGPT), time.time
    monkeypatch.setattr(rewritten.time, "time", lambda: now() + 3600)
    said(run, 10, 3600)
    said(run, 20, 60.0)
    said(run, 30, -60.0)
    os.utime(written(run, "ckpt.pt"))
    assert found.copy().startswith("kept_states/20-")
