"""Checkpoints of a program of the user's own: the files that a pattern names."""

from __future__ import annotations

import os
import time

import pytest

from agent.checkpoints import files


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "saved").mkdir()
    return tmp_path


def checkpoints(folder):
    return files.Format(str(folder), {"pattern": r"saved/model-(?P<step>\d+)\.pt"})


def written(folder, step, content=b"weights", age_s=100.0):
    """Write a checkpoint in place, that many seconds ago."""
    path = folder / "saved" / f"model-{step}.pt"
    path.write_bytes(content)
    moment = time.time() - age_s
    os.utime(path, (moment, moment))
    return path


def test_the_newest_is_the_one_of_the_highest_step(folder):
    for step in (9, 100, 20):
        written(folder, step)
    (folder / "saved" / "model-final.pt").write_bytes(b"other")
    assert checkpoints(folder).newest_whole() == (100, "saved/model-100.pt")
    assert checkpoints(folder).prepare("saved/model-100.pt") == ["saved/model-100.pt"]


@pytest.mark.parametrize(
    ("written_at", "changed_at", "rests"),
    [(999, 999, False), (960, 960, True), (999, 999.5, True), (2200, 2200, True)],
    ids=["in place a moment ago", "in place long ago", "renamed", "the clock was set back"],
)
def test_a_file_rests_once_it_was_renamed_or_written_long_ago(written_at, changed_at, rests):
    assert files.is_at_rest(written_at, changed_at, now=1000) is rests


def test_a_file_that_is_open_is_being_written_and_whole_once_it_is_closed(folder):
    path = folder / "saved" / "model-40.pt"
    with path.open("wb") as file:
        file.write(b"weights")
        file.flush()
        assert checkpoints(folder).flaw_of("saved/model-40.pt") == "saved/model-40.pt is being written"
    assert checkpoints(folder).newest_whole() == (40, "saved/model-40.pt")


def test_a_file_that_was_renamed_into_place_is_whole_at_once(folder):
    partial = folder / "saved" / "partial"
    partial.write_bytes(b"weights")
    time.sleep(0.02)
    partial.rename(folder / "saved" / "model-30.pt")
    assert checkpoints(folder).newest_whole() == (30, "saved/model-30.pt")


def test_an_empty_file_is_torn(folder):
    written(folder, 10, b"")
    assert checkpoints(folder).newest_whole() is None


def test_old_ones_are_pruned_and_what_is_gone_on_from_stays(folder):
    for step in (1, 2, 3, 4):
        written(folder, step)
    assert checkpoints(folder).prune("saved/model-1.pt") == ["saved/model-2.pt"]
    assert [step for step, _ in checkpoints(folder).found()] == [4, 3, 1]
