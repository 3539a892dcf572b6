"""Machines do not go while a run lies only on them, unless a person says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from setup import at_stake
from setup.at_stake import Stake, judge, settle, takes_machines
from setup.environment import Home
from setup.errors import MISTAKE, SetupError
from setup.progress import Stages

RUNNING = {"run": "0123456789ab", "state": "running", "step": 250, "checkpoint": 200}
STAKE = Stake("0123456789ab", 250, 200, 100, "2026-11-21T10:00:00+00:00")


def test_a_run_that_was_never_fetched_would_be_lost() -> None:
    assert str(judge(RUNNING, None)) == (
        "run 0123456789ab lies on its machines only: step 250, its newest checkpoint at 200; nothing of it was fetched"
    )


def test_a_run_that_went_on_since_it_was_fetched_would_be_lost() -> None:
    stake = judge(RUNNING, {"step": 100, "fetched": "2026-11-21T10:00:00+00:00"})
    assert "fetched last at step 100, 2026-11-21T10:00:00+00:00" in str(stake)


def test_a_run_whose_newest_checkpoint_is_here_loses_nothing() -> None:
    assert judge(RUNNING, {"step": 200, "fetched": "2026-11-21T10:00:00+00:00"}) is None


def test_steps_without_a_checkpoint_would_be_lost_whatever_was_fetched() -> None:
    assert "without a checkpoint yet" in str(judge({**RUNNING, "checkpoint": None}, {"step": None, "fetched": "now"}))


def test_machines_without_a_step_hold_nothing() -> None:
    assert judge({"run": None, "state": "absent", "step": None, "checkpoint": None}, None) is None


def settled(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, stake: Stake | None, fetch_code: int = 0, **answer: str
) -> list[str]:
    ran: list[str] = []
    monkeypatch.setattr(at_stake, "look", lambda home, stack: stake)
    monkeypatch.setattr(at_stake.fab, "in_view", lambda home, verb, stack: ran.append(verb) or fetch_code)
    settle(Home(tmp_path, tmp_path), "v100", "make down", answer, Stages())
    return ran


def test_without_a_word_nothing_is_touched_and_both_ways_are_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(SetupError, match="make down STACK=v100 FETCH=1.*make down STACK=v100 DISCARD=1") as refused:
        settled(monkeypatch, tmp_path, STAKE)
    assert refused.value.exit_code == MISTAKE


def test_machines_that_do_not_answer_are_not_taken_for_empty(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="nobody can tell what they hold"):
        settled(monkeypatch, tmp_path, Stake(None, None, None, None, None))


def test_the_run_is_brought_home_first_when_asked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert settled(monkeypatch, tmp_path, STAKE, FETCH="1") == ["fetch"]


def test_machines_stay_when_bringing_home_failed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="the machines stay and cost on"):
        settled(monkeypatch, tmp_path, STAKE, fetch_code=1, FETCH="1")


def test_a_person_may_give_it_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert settled(monkeypatch, tmp_path, STAKE, DISCARD="1") == []


def test_nothing_is_asked_when_nothing_would_be_lost(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert settled(monkeypatch, tmp_path, None) == []


@pytest.mark.parametrize(
    ("op", "goes"), [("same", False), ("update", False), ("create", False), ("replace", True), ("delete", True)]
)
def test_only_machines_that_go_count(op: str, goes: bool) -> None:
    parents = "microcluster:index:TrainingCluster$microcluster:index:GpuNode$"
    guest = f"urn:pulumi:local::microcluster::{parents}softlayer:index:VirtualGuest::gpu-0-guest"
    group = guest.replace("VirtualGuest::", "SecurityGroup::")
    steps = [{"op": op, "urn": guest}, {"op": "replace", "urn": group}]
    assert takes_machines({"steps": steps}) is goes
