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
    ("size", "written_at", "changed_at", "flaw"),
    [
        (0, 900, 900, "is empty"),
        (7, 999, 999, "is being written"),
        (7, 960, 960, ""),
        (7, 999, 999.5, ""),
        (7, 2200, 2200, ""),
    ],
    ids=["empty", "in place a moment ago", "in place and at rest", "renamed", "the clock was set back"],
)
def test_a_file_is_whole_once_it_was_renamed_or_rests(size, written_at, changed_at, flaw):
    assert files.flaw(size, written_at, changed_at, now=1000) == flaw


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
