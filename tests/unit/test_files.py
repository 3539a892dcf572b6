"""Whole files, whole folders and locks."""

from pathlib import Path

import pytest

from microcluster.core.files import locked, whole_folder, write_whole


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    file = tmp_path / "manifest.json"
    for text in ("first", "second"):
        write_whole(file, text)
        assert file.read_text() == text
    assert list(tmp_path.iterdir()) == [file]


def test_what_is_made_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    folder = tmp_path / "engine" / "abc"
    with pytest.raises(KeyboardInterrupt), whole_folder(folder) as made:
        (made / "pulumi").touch()
        raise KeyboardInterrupt
    assert list(folder.parent.iterdir()) == []
    for name in ("one", "other"):
        with whole_folder(folder) as made:
            (made / name).touch()
        assert [path.name for path in folder.iterdir()] == [name]


def test_who_finds_a_lock_held_learns_what_its_holder_has_written(tmp_path: Path) -> None:
    def refuse(holder: str) -> None:
        raise PermissionError(holder)

    with locked(tmp_path / "locks" / "a.lock", refuse) as file:
        file.write("process 7")
        file.flush()
        with pytest.raises(PermissionError, match="process 7"), locked(tmp_path / "locks" / "a.lock", refuse):
            pass
    with locked(tmp_path / "locks" / "a.lock", refuse):
        pass
