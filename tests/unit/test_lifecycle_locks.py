"""The locks that a pulumi leaves beside its state."""

from pathlib import Path

import pytest

from core.home import Home
from microcluster.lifecycle import locks


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "state" / ".pulumi" / "locks" / "organization" / "microcluster" / "local"
    made.mkdir(parents=True)
    return made


def home(folder: Path) -> Home:
    root = folder.parents[5]
    return Home(root, root / "cache")


def test_a_pulumi_that_ends_while_its_lock_is_looked_for_has_none(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = folder / "a.json"
    lock.write_text("{}")
    listed = [lock]
    monkeypatch.setattr(Path, "glob", lambda self, pattern: listed)
    lock.unlink()
    assert locks.pulumi_locks("local", home(folder)) == ()


@pytest.mark.parametrize("content", ["", "{", "[]", "7", '{"pid": "x"}', "\udcff"])
def test_a_lock_that_was_cut_off_is_stale_and_names_nobody(folder: Path, content: str) -> None:
    (folder / "a.json").write_bytes(content.encode("utf-8", "surrogateescape"))
    assert [(lock.pid, lock.is_stale) for lock in locks.pulumi_locks("local", home(folder))] == [(0, True)]
