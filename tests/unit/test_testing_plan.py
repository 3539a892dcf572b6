"""What `make test` chooses and says before it begins."""

import pytest

from core.home import Home
from microcluster.setup.errors import CommandFailed
from tools import testing
from tools.testing import plan_text, planned


def test_fast_is_unit_and_integration_on_our_own_python() -> None:
    assert [suite.title for suite in planned(["3.12"], fast=True, containers=True)] == ["integration unit"]


def test_all_is_every_suite_and_the_unit_tests_on_every_other_python() -> None:
    titles = [suite.title for suite in planned(["3.12", "3.13"], fast=False, containers=True)]
    assert titles == ["integration unit", "commands", "chaos", "unit on 3.12", "unit on 3.13", "e2e"]
    assert "e2e" not in [suite.title for suite in planned([], fast=False, containers=False)]


def test_the_plan_names_every_suite_with_its_minutes_and_their_sum() -> None:
    suites = planned(["3.12"], fast=False, containers=True)
    head, *lines, hint = plan_text(suites, fast=False)
    assert f"usually {sum(suite.usual_min for suite in suites)} min" in head
    assert [line.split("  ")[1] for line in lines] == [suite.title for suite in suites]
    assert "FAST=1" in hint


def test_in_ci_a_machine_without_containers_is_refused_before_any_test_runs(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("CI", "true")
    monkeypatch.delenv("FAST", raising=False)
    monkeypatch.setattr(testing, "other_pythons", dict)
    monkeypatch.setattr(testing.docker, "why_no_containers", lambda: "machines need root")
    with pytest.raises(CommandFailed, match="machines need root. In CI they must"):
        testing.test(Home(tmp_path, tmp_path))
