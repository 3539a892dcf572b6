"""The verbs of Fabric as make runs them."""

from pathlib import Path

import pytest

from core.home import Home
from microcluster.lifecycle import commands
from microcluster.setup.environment import PART_OF_MAKE


def test_a_verb_that_make_runs_knows_it_from_its_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = {}
    monkeypatch.setattr(commands, "run_in_view", lambda argv, env, limit_s: seen.update(argv=argv, env=env) or 3)
    assert commands.fab(Home(tmp_path, tmp_path), "recover", "p100", "--yes") == 3
    assert seen["argv"][1:] == ("recover", "--stack", "p100", "--yes")
    assert seen["env"][PART_OF_MAKE]


def test_an_unknown_status_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "FAB", "/no/such/fab")
    assert commands.status(Home(tmp_path, tmp_path), "p100") is None
