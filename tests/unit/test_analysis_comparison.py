"""Runs beside each other: their table, and which was the better buy."""

import json
from pathlib import Path
from typing import Any

import pytest

from microcluster.analysis.comparison import better_buy, reported, same_loss, table
from microcluster.commands import compare as command
from microcluster.commands.setup import images


def facts(run: str, machines: int, seconds: float | None, per_hour: str | None, **changes: Any) -> dict[str, Any]:
    """Return what `fab report` writes of a run of the published table's small configuration."""
    cost = {"per_hour": per_hour, "so_far": "1.50", "emulated": False}
    found = {"run": run, "stack": "texar-p100", "state": "finished", "kind": "texar"}
    found |= {"unit": "epoch", "trains": "small"}
    results = {"perplexity": 40.81, "validation_perplexity": 118.99, "test_perplexity": 114.72}
    labels = {name: name.replace("_", " ") for name in results}
    size = {"labels": labels, "nodes": [{}] * machines, "world_size": machines, "step": 13, "seconds_per_step": seconds}
    return found | size | {"cost": cost, "metrics": results, "bill": [], "evaluations": []} | changes


ONE, TWO = facts("1111aaaaaaaa", 1, 137.0, "2.5"), facts("2222bbbbbbbb", 2, 207.0, "5.0")


def test_the_table_has_a_row_per_run_with_results_time_and_dollars() -> None:
    heads, rows = table([reported(TWO), reported(ONE)])
    shown = [dict(zip(heads, row, strict=True)) for row in rows]
    assert [row["machines"] for row in shown] == ["1", "2"]
    assert shown[1] == {
        **{"run": "2222bbbbbbbb", "stack": "texar-p100", "state": "finished", "machines": "2", "ranks": "2"},
        **{"epochs": "13", "perplexity": "40.81", "validation perplexity": "118.99", "test perplexity": "114.72"},
        **{"s/epoch": "207.0", "$/epoch": "$0.2875", "$/hour": "$5.00", "$ so far": "$1.50"},
    }


ORDERED = 1_767_225_600.0


def learned(one: dict[str, Any], *hours_and_losses: tuple[float, float | str]) -> dict[str, Any]:
    """Return a report with a bill, and evaluations so many hours after the order."""
    measured = [{"step": 1, "loss": loss, "t": ORDERED + 3600 * hours} for hours, loss in hours_and_losses]
    kept = {"opened": None}
    return one | {"bill": [{"opened": ORDERED + 60}, {"opened": ORDERED}, kept], "evaluations": measured}


def test_the_better_buy_reached_the_common_loss_for_fewer_dollars() -> None:
    slow = reported(learned(ONE, (1.0, 5.0), (3.5, 4.0), (5.2, 3.0)))
    quick = reported(learned(TWO, (0.8, 5.0), (2.5, 4.0), (2.7, "nan")))
    assert same_loss([slow, quick]) == 4.0
    assert [(one.hours_to(4.0), one.dollars_to(4.0)) for one in (slow, quick)] == [(3.5, 10.0), (2.5, 15.0)]
    assert better_buy([quick, slow]) == (
        "The better buy is 1111aaaaaaaa (texar-p100): to a validation loss of 4 it took $10.00 and 3.50 h from the order on, "
        "instead of $15.00 and 2.50 h with 2222bbbbbbbb (texar-p100)."
    )
    heads, rows = table([slow, quick])
    assert dict(zip(heads, rows[0], strict=True))["$ to 4"] == "$10.00"


def test_what_was_never_measured_has_no_better_buy() -> None:
    reached = reported(learned(ONE, (1.0, 5.0)))
    assert "unknown: a run has no validation loss" in better_buy([reached, reported(TWO)])
    behind = reported(learned(TWO, (-3.0, 5.0), (1.0, 4.0)))
    assert "unknown: a run has no validation loss" in better_buy([reached, behind]), "its clock is not the account's"
    free = reported(learned(facts("2222bbbbbbbb", 2, 207.0, None), (1.0, 5.0)))
    assert "unknown: a run has no price" in better_buy([reached, free])


@pytest.fixture
def artifacts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for one in (learned(ONE, (1.0, 5.0)), learned(TWO, (2.0, 4.5))):
        folder = tmp_path / one["stack"] / one["run"]
        folder.mkdir(parents=True)
        (folder / "report.json").write_text(json.dumps(one))
    monkeypatch.setattr(command, "ARTIFACTS", tmp_path)
    return tmp_path


def test_runs_are_found_by_prefix_and_their_page_has_curves_and_table(artifacts, capsys):
    assert command.compare.code(runs=["2222", "1111"]) == 0
    said = capsys.readouterr().out
    assert "207.0" in said and "The better buy is 1111aaaaaaaa" in said
    assert command.compare.code(runs=["2222", "1111"], as_json=True) == 0
    assert json.loads(capsys.readouterr().out)["runs"][0]["machines"] == 2
    (path,) = (artifacts / "comparisons").glob("*.html")
    page = path.read_text()
    assert page.count("<svg") == 2 and "by dollars" in page and "<th>2222bbbbbbbb</th>" in page
    assert "<script" not in page


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["1111"], "takes at least two runs"),
        (["1111", "3333"], "'3333' is no run with a report on this computer. Runs with a report: 1111aaaaaaaa"),
        (["", "1111"], "'' is no run with a report"),
        (["1111", "1111aaaa"], "takes at least two runs"),
    ],
)
def test_a_run_without_a_report_is_named_with_those_that_have_one(names, expected, artifacts, capsys):
    assert command.compare.code(runs=names) == 2
    assert expected in capsys.readouterr().err


def test_runs_of_two_kinds_have_their_own_columns_and_a_warning(artifacts, capsys):
    path = artifacts / "texar-p100" / TWO["run"] / "report.json"
    other = {"unit": "step", "trains": "a network", "labels": {"bleu": "BLEU"}, "metrics": {"bleu": 27.3}}
    path.write_text(json.dumps(learned(TWO | other, (2.0, 4.5))))
    assert command.compare.code(runs=["1111", "2222"]) == 0
    shown = capsys.readouterr().out
    assert "epochs" in shown and "steps" in shown and "27.30" in shown and "They train different things" in shown


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ('{"run": "2222', "'2222' is no run with a report on this computer. Runs with a report: 1111aaaaaaaa"),
        (json.dumps({"run": "2222bbbbbbbb", "kind": "texar"}), "says no 'cost': it is of another version"),
    ],
)
def test_a_torn_report_or_one_of_another_version_is_a_sentence(content, expected, artifacts, capsys):
    (artifacts / "texar-p100" / TWO["run"] / "report.json").write_text(content)
    assert command.compare.code(runs=["1111", "2222"]) == 2
    assert expected in capsys.readouterr().err


def test_words_without_a_dash_are_values_of_the_option_that_may_be_left_out() -> None:
    assert command.compare.with_option(["a", "--json", "b"]) == ["--runs=a", "--json", "--runs=b"]
    assert images.with_option(["--only", "a", "b"]) == ["--only=a", "--only=b"]
