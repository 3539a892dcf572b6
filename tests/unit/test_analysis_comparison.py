"""Runs beside each other: their table, and whether more machines paid."""

import json
from pathlib import Path
from typing import Any

import pytest

from microcluster.analysis.comparison import compared, table, verdicts
from microcluster.commands.command import UserMistake, each_with_its_option
from microcluster.commands.report import compare


def facts(run: str, machines: int, seconds: float | None, per_hour: str | None, **changes: Any) -> dict[str, Any]:
    """Return what `fab report` writes of a run of the published table's small configuration."""
    cost = {"per_hour": per_hour, "so_far": "1.50", "emulated": False}
    found = {
        "run": run,
        "stack": "texar-p100",
        "state": "finished",
        "kind": "texar",
        "unit": "epoch",
        "trains": "small",
    }
    results = {"perplexity": 40.81, "validation_perplexity": 118.99, "test_perplexity": 114.72}
    labels = {name: name.replace("_", " ") for name in results}
    size = {"labels": labels, "nodes": [{}] * machines, "world_size": machines, "step": 13, "seconds_per_step": seconds}
    return found | size | {"cost": cost, "metrics": results} | changes


ONE, TWO = facts("1111aaaaaaaa", 1, 137.0, "2.5"), facts("2222bbbbbbbb", 2, 207.0, "5.0")


def judged(*runs: dict[str, Any]) -> list[str]:
    return verdicts([compared(one) for one in runs])


def test_a_second_machine_that_makes_epochs_longer_does_not_pay() -> None:
    assert judged(TWO, ONE) == [
        "The second machine does not pay: an epoch takes 207.0 s instead of 137.0 s (1.51 times as long) "
        "and costs $0.2875 instead of $0.0951."
    ]


@pytest.mark.parametrize(
    ("seconds", "per_hour", "expected"),
    [
        (100.0, "5.0", "The second machine pays in time only: "),
        (60.0, "5.0", "The second machine pays in time and in money: "),
        (100.0, None, "The second machine pays in time only: "),
        (None, "5.0", "Whether the second machine pays is unknown: a run has no time of an epoch."),
    ],
)
def test_time_and_money_are_judged_apart(seconds: float | None, per_hour: str | None, expected: str) -> None:
    assert judged(ONE, facts("2222bbbbbbbb", 2, seconds, per_hour))[0].startswith(expected)


def test_more_machines_are_compared_with_the_next_fewer_ones() -> None:
    found = judged(facts("4444dddddddd", 4, 80.0, "10.0"), ONE, TWO)
    assert [one.partition(":")[0] for one in found] == [
        "The second machine does not pay",
        "4 machines instead of 2 pay in time and in money",
    ]


def test_runs_that_train_something_else_are_not_judged() -> None:
    assert judged(ONE, TWO | {"trains": "large"}) == [
        "Whether more machines pay is unknown: the runs do not train the same."
    ]


def test_the_table_has_a_row_for_each_run_with_its_results_time_and_dollars() -> None:
    heads, rows = table([compared(TWO), compared(ONE)])
    shown = [dict(zip(heads, row, strict=True)) for row in rows]
    assert [row["machines"] for row in shown] == ["1", "2"]
    assert shown[1] == {
        **{"run": "2222bbbbbbbb", "stack": "texar-p100", "state": "finished", "machines": "2", "ranks": "2"},
        **{"epochs": "13", "perplexity": "40.81", "validation perplexity": "118.99", "test perplexity": "114.72"},
        **{"s/epoch": "207.0", "$/epoch": "$0.2875", "$/hour": "$5.00", "$ so far": "$1.50"},
    }


@pytest.fixture
def artifacts(tmp_path: Path) -> Path:
    for one in (ONE, TWO):
        folder = tmp_path / one["stack"] / one["run"]
        folder.mkdir(parents=True)
        (folder / "report.json").write_text(json.dumps(one))
    return tmp_path


def test_runs_are_found_by_how_their_names_begin(artifacts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compare(["2222", "1111"], as_json=False, artifacts=artifacts) == 0
    said = capsys.readouterr().out
    assert "207.0" in said and "The second machine does not pay" in said
    assert compare(["2222", "1111"], as_json=True, artifacts=artifacts) == 0
    assert json.loads(capsys.readouterr().out)["runs"][0]["machines"] == 2


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["1111"], "compares at least two runs"),
        (["1111", "3333"], "'3333' is no run with a report on this computer. Runs with a report: 1111aaaaaaaa"),
        (["", "1111"], "'' is no run with a report"),
    ],
)
def test_a_run_without_a_report_is_named_with_those_that_have_one(
    names: list[str], expected: str, artifacts: Path
) -> None:
    with pytest.raises(UserMistake, match=expected):
        compare(names, as_json=False, artifacts=artifacts)


def test_runs_of_two_kinds_are_refused(artifacts: Path) -> None:
    path = artifacts / "texar-p100" / TWO["run"] / "report.json"
    path.write_text(json.dumps(TWO | {"kind": "openseq2seq"}))
    with pytest.raises(UserMistake, match="2222bbbbbbbb is of kind openseq2seq"):
        compare(["1111", "2222"], as_json=False, artifacts=artifacts)


def test_every_word_after_runs_belongs_to_it() -> None:
    words = ["report", "--runs", "a", "b", "--json", "--stack", "c"]
    assert each_with_its_option(words) == [*("report", "--runs", "a", "--runs", "b", "--json", "--stack", "c")]
