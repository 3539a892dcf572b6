"""Machines do not go while a run lies only on them, unless a person says so."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from command_samples import CLUSTER

from microcluster.analysis.run_state import Outcome
from microcluster.core.home import Home
from microcluster.lifecycle import pulumi
from microcluster.run import unsaved_work
from microcluster.run.unsaved_work import judge, machines_taken, save_before_destroy, save_before_update
from microcluster.setup.errors import CommandFailed, UserMistake
from microcluster.setup.progress import Stages

RUN = str(CLUSTER.run)
RUNNING = Outcome("running", step=250, checkpoints=(200,))
STAKE = f"run {RUN} lies on its machines only"
NEWEST = "logdir/step-200.pt (1.2 GB, newest checkpoint on gpu-0)"
FETCHED = {
    **{"run": RUN, "step": 200, "fetched": "2026-11-21T10:00:00+00:00", "fetched_step": 200},
    **{"unfetched": [], "sum": "9 files of 4.0 GB (1 kept, 8 put aside)", "silent": [], "gone_on": False},
}
NEVER = {**FETCHED, "fetched": None, "fetched_step": None, "unfetched": [NEWEST], "gone_on": True}


def lost(outcome: Outcome, *listed: dict[str, object]) -> list[str]:
    return judge(RUN, outcome, listed)


def seen(**changes: Any) -> Outcome:
    return dataclasses.replace(RUNNING, **changes)


def test_a_run_that_was_never_fetched_or_has_saved_again_since_would_be_lost():
    [text] = lost(RUNNING, NEVER)
    assert text.startswith(f"{STAKE}: step 250, its newest checkpoint at 200; nothing of it was fetched")
    assert text.endswith(f"not fetched: 9 files of 4.0 GB (1 kept, 8 put aside): {NEWEST}")
    [text] = lost(RUNNING, {**FETCHED, "fetched_step": 100, "unfetched": [NEWEST]})
    assert "fetched last at step 100, 2026-11-21 10:00:00 UTC" in text


BEGINS = Outcome("preparing")
EMPTY = {**NEVER, "step": None, "unfetched": []}


@pytest.mark.parametrize(
    ("outcome", "listed"),
    [
        (RUNNING, {**FETCHED, "gone_on": True}),
        (seen(state="finished", checkpoints=()), {**FETCHED, "step": None}),
        (BEGINS, EMPTY),
        (dataclasses.replace(BEGINS, state="failed"), {**EMPTY, "silent": ["gpu-1: connecting: no answer."]}),
    ],
    ids=["newest checkpoint here", "finished without checkpoints and fetched", "not begun", "failed before it began"],
)
def test_a_run_of_which_nothing_is_on_its_machines_alone_loses_nothing(outcome, listed):
    assert lost(outcome, listed) == []


@pytest.mark.parametrize(
    "status",
    [seen(checkpoints=()), seen(step=None, state="failed"), seen(step=None, checkpoints=())],
    ids=[
        "steps without a checkpoint",
        "a torn checkpoint and no step that was read",
        "at work without a step that was read",
    ],
)
def test_a_run_that_has_gone_on_and_has_no_whole_checkpoint_would_be_lost(status):
    assert lost(status, {**FETCHED, "step": None, "gone_on": True})


def test_an_earlier_run_on_the_same_machines_would_be_lost_with_them():
    earlier = {**NEVER, "run": "ba9876543210", "step": 90}
    [text] = lost(RUNNING, FETCHED, earlier)
    assert text.startswith("earlier run ba9876543210 lies on its machines only: its newest checkpoint at 90")


def test_many_files_are_counted_and_only_the_first_are_named():
    files = [f"logdir/{number}.json (2 kB, small file on gpu-1)" for number in range(9)]
    [text] = lost(RUNNING, {**FETCHED, "unfetched": files})
    assert files[4] in text and files[5] not in text and text.endswith(" and 4 more")


def test_a_machine_that_does_not_answer_counts_until_all_was_fetched_after_the_runs_end():
    silent = {**FETCHED, "silent": ["connecting to gpu-1: no answer."]}
    assert lost(RUNNING, silent) == []
    assert "gpu-1: no answer" in lost(RUNNING, {**silent, "gone_on": True})[0]


def looked(monkeypatch: pytest.MonkeyPatch, outcome: Outcome | None, listed: Any) -> list[str]:
    def answer(stack: str) -> Any:
        if listed is None:
            raise CommandFailed("connecting to gpu-0: no answer.")
        return listed

    monkeypatch.setattr(unsaved_work, "unfetched_runs", answer)
    return unsaved_work.look("v100", (None if outcome.state == "absent" else CLUSTER, outcome) if outcome else None)


def test_machines_that_do_not_answer_are_not_taken_for_empty_and_without_a_cluster_none_is_asked(monkeypatch):
    for outcome in (None, RUNNING):
        assert looked(monkeypatch, outcome, None) == ["its machines do not answer, so their data are unknown"]
    assert looked(monkeypatch, Outcome("absent"), None) == []


def settled(monkeypatch, stake, choice=None, fetch_code=0):
    ran: list[tuple[str, dict[str, object]]] = []
    monkeypatch.setattr(unsaved_work, "apart", lambda limit_s, function, stack: [stake] if stake else [])

    def fetch(part, **options):
        ran.append((part.__name__, options))
        return fetch_code

    monkeypatch.setattr(unsaved_work, "run_part", fetch)
    save_before_destroy("v100", choice, Stages())
    return ran


def test_without_a_word_nothing_is_touched_and_both_ways_are_named(monkeypatch):
    with pytest.raises(UserMistake, match="make down STACK=v100 FETCH=1.*make down STACK=v100 DISCARD=1"):
        settled(monkeypatch, STAKE)


@pytest.mark.parametrize(
    ("stake", "choice", "ran"),
    [
        (STAKE, "fetch", [("fetch_runs", {"stack": "v100", "everything": True})]),
        (STAKE, "discard", []),
        (None, None, []),
    ],
)
def test_what_a_person_has_said_is_done_and_without_a_loss_nothing_is_asked(monkeypatch, stake, choice, ran):
    assert settled(monkeypatch, stake, choice) == ran


def test_machines_stay_when_the_download_failed(monkeypatch):
    with pytest.raises(CommandFailed, match="the machines stay and cost money"):
        settled(monkeypatch, STAKE, "fetch", fetch_code=1)


GUEST = (
    "urn:pulumi:local::microcluster::microcluster:index:TrainingCluster$microcluster:index:GpuNode$"
    "softlayer:index:VirtualGuest::gpu-0-guest"
)


@pytest.mark.parametrize(("op", "goes"), [("same", False), ("update", False), ("replace", True), ("delete", True)])
def test_only_machines_that_go_count(op, goes):
    group = GUEST.replace("VirtualGuest::", "SecurityGroup::")
    steps = [{"op": "refresh", "urn": GUEST}, {"op": op, "urn": GUEST}, {"op": "replace", "urn": group}]
    assert machines_taken({"steps": steps}) == (["gpu-0-guest"] if goes else [])


def previewed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, answer: str, code: int = 0) -> str | None:
    """Ask with a pulumi that prints this, and keeps its words in a file."""
    program = tmp_path / "pulumi"
    program.write_text(f"#!/bin/sh\necho \"$@\" > {tmp_path}/words\ncat <<'END'\n{answer}\nEND\nexit {code}\n")
    program.chmod(0o755)
    monkeypatch.setattr(pulumi, "PULUMI", program)
    return unsaved_work.why_something_ends(Home(tmp_path, tmp_path), "v100", RUN)


def test_the_preview_looks_at_the_account_as_the_update_will_and_names_what_that_would_replace(monkeypatch, tmp_path):
    assert previewed(monkeypatch, tmp_path, '{"steps": []}') is None
    assert "--refresh --run-program" in (tmp_path / "words").read_text()
    steps = json.dumps({"steps": [{"op": "replace", "urn": GUEST}]})
    assert previewed(monkeypatch, tmp_path, steps) == "an update would replace or remove gpu-0-guest"


@pytest.mark.parametrize(
    ("answer", "code", "reason"),
    [
        ('{"diagnostics": [{"severity": "error", "message": "no key\\n[/b]"}]}', 255, "no key [/b]"),
        ("{}", 255, "pulumi gave no reason"),
        ("panic: at once", 2, "JSONDecodeError"),
        ('{"steps": [7]}', 0, "TypeError"),
    ],
)
def test_a_failed_preview_is_no_leave_to_replace_machines(monkeypatch, tmp_path, answer, code, reason):
    why = previewed(monkeypatch, tmp_path, answer, code)
    assert why and "cannot be told" in why and reason in why


def test_a_preview_that_hangs_or_is_missing_is_no_leave_either(monkeypatch, tmp_path):
    monkeypatch.setattr(pulumi, "PULUMI", tmp_path / "none")
    assert "No such file" in str(unsaved_work.why_something_ends(Home(tmp_path, tmp_path), "v100", None))
    monkeypatch.setattr(unsaved_work, "PREVIEW_S", 0)
    assert "no answer" in str(previewed(monkeypatch, tmp_path, "{}"))


def starting(run: str) -> dict[str, object]:
    inputs = {"create": "exec .venv/bin/fab step.start-job", "triggers": [run, "101", "102"]}
    urn = "urn:pulumi:local::microcluster::command:local:Command::job-run"
    return {"op": "replace", "urn": urn, "newState": {"inputs": inputs}}


def test_an_update_that_starts_another_run_ends_the_one_at_work(monkeypatch, tmp_path):
    assert previewed(monkeypatch, tmp_path, json.dumps({"steps": [starting(RUN)]})) is None
    why = previewed(monkeypatch, tmp_path, json.dumps({"steps": [starting("ba9876543210")]}))
    assert why == f"an update would end run {RUN}, which is at work, and start another"


def updated(monkeypatch, tmp_path, state, stake, why):
    """Return for which run at work the preview was asked, and what was done about the answer."""
    asked: list[str | None] = []
    monkeypatch.setattr(unsaved_work, "observed_or_none", lambda stack: (CLUSTER, seen(state=state)))
    monkeypatch.setattr(unsaved_work, "look", lambda stack, seen: [stake] if stake else [])
    monkeypatch.setattr(unsaved_work, "why_something_ends", lambda home, stack, living: asked.append(living) or why)
    save_before_update(Home(tmp_path, tmp_path), "v100", None, Stages())
    return asked


@pytest.mark.parametrize("stake", [None, STAKE])
def test_a_run_at_work_is_not_ended_without_a_question_though_all_it_saved_was_fetched(monkeypatch, tmp_path, stake):
    with pytest.raises(UserMistake, match=r"an update would end it; (all that )?run abcd.*STACK=v100 DISCARD=1"):
        updated(monkeypatch, tmp_path, "running", stake, "an update would end it")


@pytest.mark.parametrize(
    ("state", "stake", "asked"),
    [("finished", None, []), ("finished", STAKE, [None]), ("running", None, [RUN]), ("stalled", None, [RUN])],
)
def test_an_update_is_previewed_only_where_a_run_could_be_lost_or_ended(monkeypatch, tmp_path, state, stake, asked):
    assert updated(monkeypatch, tmp_path, state, stake, None) == asked
