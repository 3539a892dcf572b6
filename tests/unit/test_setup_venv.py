"""The virtual environment: made once, made again only for a reason, never left half."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from setup import venv
from setup.environment import Home
from setup.errors import SetupError
from setup.process import Step


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project without a ``.venv``; nothing is installed, the steps are only written down."""
    lock = tmp_path / "requirements.lock"
    lock.write_text("rich==14\n")
    monkeypatch.setattr(venv, "VENV", tmp_path / ".venv")
    monkeypatch.setattr(venv, "STAMP", tmp_path / ".venv" / "stamp.json")
    monkeypatch.setattr(venv, "LOCK_FILE", lock)
    return tmp_path


@pytest.fixture
def steps(folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    seen: list[str] = []

    def run(step: Step, _: object) -> None:
        seen.append(step.what)
        (folder / ".venv" / "bin").mkdir(parents=True, exist_ok=True)
        (folder / ".venv" / "bin" / "python").touch()

    monkeypatch.setattr(venv, "run_logged", run)
    return seen


def home(folder: Path) -> Home:
    return Home(folder / "home", folder / "home" / "cache")


MAKE, INSTALL = "making .venv", "installing the Python packages"


def test_it_is_made_once(folder: Path, steps: list[str]) -> None:
    venv.ensure(home(folder))
    venv.ensure(home(folder))
    assert steps == [MAKE, INSTALL]


def test_another_lock_file_is_installed_into_what_is_there(folder: Path, steps: list[str]) -> None:
    venv.ensure(home(folder))
    (folder / "requirements.lock").write_text("rich==15\n")
    venv.ensure(home(folder))
    assert steps == [MAKE, INSTALL, INSTALL]


def test_one_that_lost_its_python_is_made_from_the_beginning(folder: Path, steps: list[str]) -> None:
    venv.ensure(home(folder))
    (folder / ".venv" / "bin" / "python").unlink()
    venv.ensure(home(folder))
    assert steps == [MAKE, INSTALL, MAKE, INSTALL]


def test_one_that_was_interrupted_is_made_from_the_beginning(
    folder: Path, steps: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    venv.ensure(home(folder))
    (folder / "requirements.lock").write_text("rich==15\n")
    counting = venv.run_logged
    monkeypatch.setattr(venv, "run_logged", _interrupted)
    with pytest.raises(KeyboardInterrupt):
        venv.ensure(home(folder))
    monkeypatch.setattr(venv, "run_logged", counting)
    venv.ensure(home(folder))
    assert steps == [MAKE, INSTALL, MAKE, INSTALL]


def _interrupted(_: Step, __: object) -> None:
    raise KeyboardInterrupt


def test_a_moved_folder_and_another_python_ask_for_a_new_one_and_another_lock_does_not() -> None:
    there = venv.wanted()
    assert venv.to_clear(there, replace(there, place="/elsewhere/.venv"))
    assert venv.to_clear(there, replace(there, python="3.12.0"))
    assert venv.to_clear(None, there)
    assert not venv.to_clear(there, replace(there, lock="another"))


def test_a_stamp_that_cannot_be_read_is_none(folder: Path) -> None:
    (folder / ".venv").mkdir()
    venv.STAMP.write_text('{"lock": "only"}')
    assert venv.found() is None


def test_a_missing_venv_module_without_root_is_a_sentence(
    folder: Path, steps: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(SetupError, match="venv module is missing.*apt-get install python3-venv"):
        venv.ensure(home(folder))
    assert steps == []
