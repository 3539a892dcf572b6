"""The virtual environment: made once, made again only for a reason, never left half, and the old one stays until then."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from microcluster.core.home import Home
from microcluster.setup import secret_env, venv
from microcluster.setup.environment import PROJECT
from microcluster.setup.errors import CommandFailed
from microcluster.setup.process import Step

MAKE, INSTALL = "making the environment", "installing the Python packages"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project without a ``.venv``; nothing is installed, the steps are only written down."""
    lock = tmp_path / "requirements.lock"
    lock.write_text("rich==14\n")
    monkeypatch.setattr(venv, "VENV", tmp_path / ".venv")
    monkeypatch.setattr(venv, "LOCK_FILE", lock)
    return tmp_path


class Steps(list[str]):
    """Steps that were run; ``failing`` is the step that ends with an error."""

    failing: BaseException | None = None
    environment: Mapping[str, str] = {}

    def __call__(self, step: Step, environment: Mapping[str, str]) -> None:
        self.append(step.what)
        self.environment = environment
        if step.what == MAKE:
            made = Path(step.argv[-1]) / "bin"
            made.mkdir(parents=True)
            (made / "python").touch()
            (made / "number").write_text(str(len(self)))
        elif self.failing:
            raise self.failing


@pytest.fixture
def steps(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Steps:
    seen = Steps()
    monkeypatch.setattr(venv, "run_logged", seen)
    return seen


def home(folder: Path) -> Home:
    return Home(folder / "home", folder / "home" / "cache")


def in_use(folder: Path) -> str:
    return (folder / ".venv" / "bin" / "number").read_text()


@pytest.mark.parametrize(
    ("damage", "made"),
    [
        (lambda there: None, 1),
        (lambda there: (there / "bin" / "python").unlink(), 2),
        (lambda there: (there / venv.STAMP).write_text('{"lock": "only"}'), 2),
        (lambda there: (there / venv.STAMP).write_text("{"), 2),
    ],
    ids=["whole", "without a python", "a stamp of another kind", "a torn stamp"],
)
def test_it_is_made_once_and_again_where_it_is_not_whole(folder: Path, steps: Steps, damage, made: int) -> None:
    venv.ensure(home(folder))
    damage(folder / ".venv")
    venv.ensure(home(folder))
    assert steps == [MAKE, INSTALL] * made


def test_a_changed_lock_file_makes_a_new_environment_and_keeps_one_old(folder, steps):
    for version in ("15", "16", "17"):
        (folder / "requirements.lock").write_text(f"rich=={version}\n")
        venv.ensure(home(folder))
    assert steps == [MAKE, INSTALL] * 3
    assert in_use(folder) == "5"
    assert len(list(folder.glob(".venv-*"))) == 2


@pytest.mark.parametrize("why", [KeyboardInterrupt(), CommandFailed("pip found no index")])
def test_the_one_that_is_there_stays_whole_until_the_new_one_is(folder: Path, steps: Steps, why: BaseException) -> None:
    venv.ensure(home(folder))
    (folder / ".venv" / "bin" / "pulumi").symlink_to("/an/engine")
    (folder / "requirements.lock").write_text("rich==15\n")
    steps.failing = why
    with pytest.raises(type(why)):
        venv.ensure(home(folder))
    assert in_use(folder) == "1"
    steps.failing = None
    venv.ensure(home(folder))
    assert in_use(folder) == "5"
    assert os.readlink(folder / ".venv" / "bin" / "pulumi") == "/an/engine"


def test_a_plain_folder_of_an_older_version_becomes_a_link(folder: Path, steps: Steps) -> None:
    (folder / ".venv" / "bin").mkdir(parents=True)
    (folder / ".venv" / "bin" / "python").touch()
    venv.ensure(home(folder))
    assert (folder / ".venv").is_symlink() and in_use(folder) == "1"


def test_a_moved_folder_or_another_python_makes_anew_a_patch_release_not() -> None:
    there = venv.wanted(PROJECT / ".venv")
    assert not venv.fits(there, there | {"place": "/elsewhere/.venv"})
    assert not venv.fits(there, there | {"python": "3.99.0"})
    assert not venv.fits(there, there | {"lock": "another"})
    assert venv.fits(there, there | {"python": there["python"].rpartition(".")[0] + ".99"})


def test_a_missing_venv_module_without_root_is_a_sentence(folder, steps, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(CommandFailed, match="venv module is missing.*apt-get install python3-venv"):
        venv.ensure(home(folder))
    assert steps == []


def test_pip_sees_no_key_of_an_account(folder: Path, steps: Steps, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MICROCLUSTER_HOME", str(folder / "home"))
    monkeypatch.setattr(secret_env, "_KEPT", {})
    for name in secret_env.NAMES:
        monkeypatch.setenv(name, "c0ffee")
    assert venv.main() == 0
    assert steps == [MAKE, INSTALL]
    assert not set(secret_env.NAMES) & set(steps.environment)


@pytest.mark.parametrize(("version", "code"), [((3, 10, 12), 1), ((3, 11, 2), 0), ((3, 13, 9), 0), ((3, 14, 0), 1)])
def test_a_python_that_the_packages_do_not_know_is_a_sentence(folder, steps, monkeypatch, version, code):
    monkeypatch.setenv("MICROCLUSTER_HOME", str(folder / "home"))
    monkeypatch.setattr(venv.secret_env, "withhold", lambda: None)
    monkeypatch.setattr(venv.sys, "version_info", version)
    assert venv.main() == code
    assert bool(steps) is (code == 0)


def test_a_python_that_cannot_read_our_modules_gets_the_sentence_too() -> None:
    script = (
        "import datetime, runpy, sys; sys.version_info = (3, 10, 12); del datetime.UTC; runpy.run_module(sys.argv[1])"
    )
    argv = (sys.executable, "-c", script, "microcluster.setup.venv")
    done = subprocess.run(argv, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "make PYTHON=python3.13" in done.stderr
    assert "Traceback" not in done.stderr
