"""Choice and output of `make test`, and the Pythons of the unit tests."""

import sys
import tomllib
from pathlib import Path

import pytest

from microcluster.core.home import Home
from microcluster.setup import venv
from microcluster.setup.environment import PROJECT
from microcluster.setup.errors import CommandFailed
from tests import suites
from tests.suites import planned


def test_all_is_every_suite_and_the_unit_tests_on_the_other_pythons() -> None:
    titles = [suite.title for suite in planned(["3.13"], fast=False, containers=True)]
    assert titles == ["commands integration unit", "chaos guarded hostile saved", "unit on 3.13", "e2e"]
    assert "e2e" not in [suite.title for suite in planned([], fast=False, containers=False)]
    assert [suite.title for suite in planned(["3.13"], fast=True, containers=True)] == ["integration unit"]


def test_in_ci_a_machine_without_containers_is_refused_before_any_test_runs(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("CI", "true")
    monkeypatch.delenv("FAST", raising=False)
    monkeypatch.setattr(suites, "other_pythons", dict)
    monkeypatch.setattr(suites, "why_no_containers", lambda: "machines need root")
    with pytest.raises(CommandFailed, match="machines need root. In CI they must"):
        suites.test(Home(tmp_path, tmp_path))


def test_containers_need_root(monkeypatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert "root" in (suites.why_no_containers() or "")


def test_the_suites_keep_what_python_compiles_also_where_it_is_forbidden(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    assert "PYTHONDONTWRITEBYTECODE" not in suites.suite_environment(Home(tmp_path, tmp_path))


def test_small_test_files_are_in_memory_with_room_except_for_e2e(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setattr(suites, "MEMORY", tmp_path)
    monkeypatch.setattr(suites, "ROOM_BYTES", 0)
    with suites._small_files(suites.WHOLE) as place, suites._small_files(suites.E2E) as of_machines:
        assert (Path(place["TMPDIR"]).parent, of_machines) == (tmp_path, {})
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr(suites, "ROOM_BYTES", 1 << 60)
    with suites._small_files(suites.WHOLE) as place:
        assert place == {}


OURS = f"{sys.version_info.major}.{sys.version_info.minor}"
OTHER = next(series for series in suites.SERIES if series != OURS)


def program(path: Path, shows: str, code: int = 0) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho {shows}\nexit {code}\n")
    path.chmod(0o755)
    return str(path)


def test_another_python_is_found_on_the_path_or_in_pyenv(tmp_path: Path) -> None:
    environment = {"PATH": str(tmp_path), "PYENV_ROOT": str(tmp_path)}
    program(tmp_path / f"python{OURS}", OURS)
    for shows, code in ((OTHER, 127), ("2.7", 0)):
        program(tmp_path / f"python{OTHER}", shows, code)
        assert suites.other_pythons(environment) == {}
    kept = program(tmp_path / "versions" / f"{OTHER}.1" / "bin" / f"python{OTHER}", OTHER)
    assert suites.other_pythons(environment) == {OTHER: kept}, "though it is not switched on"
    there = program(tmp_path / f"python{OTHER}", OTHER)
    assert suites.other_pythons(environment) == {OTHER: there}


def test_an_environment_is_made_once_per_lock_file_and_again_if_incomplete(tmp_path, monkeypatch):
    made: list[str] = []

    def install(folder: Path, home: Home, python: str) -> None:
        made.append(python)
        folder.mkdir(parents=True, exist_ok=True)
        if len(made) == 1:
            raise KeyboardInterrupt

    lock = tmp_path / "requirements.lock"
    monkeypatch.setattr(venv, "LOCK_FILE", lock)
    monkeypatch.setattr(venv, "install", install)
    home = Home(tmp_path, tmp_path / "cache")
    lock.write_text("rich==14\n")
    with pytest.raises(KeyboardInterrupt):
        suites.prepared_python(OTHER, "python", home)
    first = suites.prepared_python(OTHER, "python", home)
    assert suites.prepared_python(OTHER, "python", home) == first
    assert len(made) == 2
    lock.write_text("rich==15\n")
    assert suites.prepared_python(OTHER, "python", home) != first


def test_the_oldest_and_the_newest_declared_python_are_tested() -> None:
    declared = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["requires-python"]
    last = int(suites.SERIES[-1].partition(".")[2])
    assert declared == f">={suites.SERIES[0]},<3.{last + 1}"
    assert ".".join(map(str, venv.OLDEST)) == suites.SERIES[0]
