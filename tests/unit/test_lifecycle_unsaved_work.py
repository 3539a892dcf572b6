"""Machines do not go while a run lies only on them, unless a person says so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from microcluster.home import Home
from microcluster.lifecycle import unsaved_work
from microcluster.lifecycle.unsaved_work import Stake, judge, machines_taken, save_before_destroy, save_before_update
from microcluster.setup import environment
from microcluster.setup.errors import MISTAKE, SetupError
from microcluster.setup.progress import Stages

RUNNING = {"run": "0123456789ab", "state": "running", "step": 250, "checkpoint": 200}
STAKE = Stake("0123456789ab", 250, 200, 100, "2026-11-21T10:00:00+00:00")


def test_a_run_that_was_never_fetched_would_be_lost() -> None:
    assert str(judge(RUNNING, None)) == (
        "run 0123456789ab lies on its machines only: step 250, its newest checkpoint at 200; nothing of it was fetched"
    )


def test_a_run_that_went_on_since_it_was_fetched_would_be_lost() -> None:
    stake = judge(RUNNING, {"step": 100, "fetched": "2026-11-21T10:00:00+00:00"})
    assert "fetched last at step 100, 2026-11-21 10:00:00 UTC" in str(stake)


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
    monkeypatch.setattr(unsaved_work, "look", lambda home, stack: stake)
    monkeypatch.setattr(unsaved_work.commands, "fab", lambda home, verb, stack: ran.append(verb) or fetch_code)
    save_before_destroy(Home(tmp_path, tmp_path), "v100", answer, Stages())
    return ran


def test_without_a_word_nothing_is_touched_and_both_ways_are_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(SetupError, match="make down STACK=v100 FETCH=1.*make down STACK=v100 DISCARD=1") as refused:
        settled(monkeypatch, tmp_path, STAKE)
    assert refused.value.exit_code == MISTAKE


def test_machines_that_do_not_answer_are_not_taken_for_empty(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="so their data are unknown"):
        settled(monkeypatch, tmp_path, Stake(None, None, None, None, None))


def test_with_fetch_the_run_is_downloaded_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert settled(monkeypatch, tmp_path, STAKE, FETCH="1") == ["fetch"]


def test_machines_stay_when_the_download_failed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="the machines stay and cost money"):
        settled(monkeypatch, tmp_path, STAKE, fetch_code=1, FETCH="1")


def test_a_person_may_give_it_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert settled(monkeypatch, tmp_path, STAKE, DISCARD="1") == []


def test_nothing_is_asked_when_nothing_would_be_lost(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert settled(monkeypatch, tmp_path, None) == []


GUEST = (
    "urn:pulumi:local::microcluster::microcluster:index:TrainingCluster$microcluster:index:GpuNode$"
    "softlayer:index:VirtualGuest::gpu-0-guest"
)


@pytest.mark.parametrize(
    ("op", "goes"), [("same", False), ("update", False), ("create", False), ("replace", True), ("delete", True)]
)
def test_only_machines_that_go_count(op: str, goes: bool) -> None:
    group = GUEST.replace("VirtualGuest::", "SecurityGroup::")
    steps = [{"op": "refresh", "urn": GUEST}, {"op": op, "urn": GUEST}, {"op": "replace", "urn": group}]
    assert machines_taken({"steps": steps}) == (["gpu-0-guest"] if goes else [])


def previewed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, answer: str, code: int = 0) -> str | None:
    """Ask with a pulumi that prints this, and keeps its words in a file."""
    pulumi = tmp_path / "pulumi"
    pulumi.write_text(f"#!/bin/sh\necho \"$@\" > {tmp_path}/words\ncat <<'END'\n{answer}\nEND\nexit {code}\n")
    pulumi.chmod(0o755)
    monkeypatch.setattr(unsaved_work, "PULUMI", pulumi)
    return unsaved_work.why_machines_may_go(Home(tmp_path, tmp_path), "v100")


def test_the_preview_looks_at_the_account_as_the_update_will(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert previewed(monkeypatch, tmp_path, '{"steps": []}') is None
    assert "--refresh --run-program" in (tmp_path / "words").read_text()


def test_machines_that_an_update_would_replace_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    steps = json.dumps({"steps": [{"op": "replace", "urn": GUEST}]})
    assert previewed(monkeypatch, tmp_path, steps) == "an update would replace or remove gpu-0-guest"


@pytest.mark.parametrize(
    ("answer", "code", "reason"),
    [
        ('{"diagnostics": [{"severity": "error", "message": "no key\\n[/b]"}]}', 255, "no key [/b]"),
        ("{}", 255, "pulumi gave no reason"),
        ("panic: at once", 2, "JSONDecodeError"),
        ('{"steps": [7]}', 0, "TypeError"),
        ("[]", 0, "AttributeError"),
    ],
)
def test_a_failed_preview_is_no_leave_to_replace_machines(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, answer: str, code: int, reason: str
) -> None:
    why = previewed(monkeypatch, tmp_path, answer, code)
    assert why and "cannot be told" in why and reason in why


def test_a_preview_that_hangs_or_is_missing_is_no_leave_either(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(unsaved_work, "PULUMI", tmp_path / "none")
    assert "FileNotFoundError" in str(unsaved_work.why_machines_may_go(Home(tmp_path, tmp_path), "v100"))
    monkeypatch.setattr(unsaved_work, "PREVIEW_S", 0)
    assert "TimeoutExpired" in str(previewed(monkeypatch, tmp_path, "{}"))


def test_the_reason_of_the_risk_is_printed_before_the_loss(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(unsaved_work, "look", lambda home, stack: STAKE)
    monkeypatch.setattr(unsaved_work, "why_machines_may_go", lambda home, stack: "an update would replace gpu-0-guest")
    with pytest.raises(SetupError, match="make up: an update would replace gpu-0-guest. Stack v100 would lose"):
        save_before_update(Home(tmp_path, tmp_path), "v100", {}, Stages())


@pytest.mark.parametrize(("stake", "previews"), [(None, []), (STAKE, ["v100"])])
def test_an_update_is_previewed_only_where_a_run_could_be_lost(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, stake: Stake | None, previews: list[str]
) -> None:
    previewed: list[str] = []
    monkeypatch.setattr(unsaved_work, "look", lambda home, stack: stake)
    monkeypatch.setattr(unsaved_work, "why_machines_may_go", lambda home, stack: previewed.append(stack))
    save_before_update(Home(tmp_path, tmp_path), "v100", {}, Stages())
    assert previewed == previews


def test_checkpoints_of_a_program_whose_steps_were_never_read_would_be_lost_too() -> None:
    stake = judge({**RUNNING, "step": None}, None)
    assert "no step was read, its newest checkpoint at 200; nothing of it was fetched" in str(stake)


def test_the_same_run_trained_again_is_not_covered_by_what_was_fetched_of_the_first_training(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(environment, "ARTIFACTS", tmp_path)
    first, again = ({**RUNNING, "word": word} for word in ("aaaaaa", "bbbbbb"))
    folder = environment.fetched_folder("v100", first["run"], first["word"])
    folder.mkdir(parents=True)
    (folder / "manifest.json").write_text('{"step": 200, "fetched": "2026-11-21T10:00:00+00:00"}')
    for status, lost in ((first, False), (again, True)):
        monkeypatch.setattr(unsaved_work.commands, "status", lambda home, stack, status=status: status)
        assert bool(unsaved_work.look(Home(tmp_path, tmp_path), "v100")) == lost
