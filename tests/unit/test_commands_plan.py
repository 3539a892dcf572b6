"""`fab plan`: the better buy for a stack's job, from published runs or from the newest run of the stack itself."""

import json
from itertools import product
from pathlib import Path

import pytest

from microcluster.analysis import bottleneck
from microcluster.commands import plan
from microcluster.config import stack as config
from providers.softlayer import billing, specs

REPORT = {
    **{"run": "0123456789ab", "gpu": "P100", "world_size": 2, "nodes": [{"name": "gpu-0"}]},
    **{"seconds_per_step": 2.0, "unit": "step", "answers": [], "emulated": False},
}


@pytest.fixture
def reports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of fetched runs, empty."""
    monkeypatch.setattr(plan, "ARTIFACTS", tmp_path)
    return tmp_path


def leave(reports: Path, stack: str, **facts: object) -> None:
    folder = reports / stack / "0123456789ab-0a0a0a"
    folder.mkdir(parents=True)
    (folder / "report.json").write_text(json.dumps({**REPORT, **facts}))


def planned(capsys: pytest.CaptureFixture[str], stack: str, **options: object) -> dict:
    assert plan.plan.code(stack=stack, as_json=True, **options) == 0
    return json.loads(capsys.readouterr().out)


def marked(found: dict, mark: str) -> dict:
    (row,) = [row for row in found["rows"] if mark in row.get("marks", ())]
    return row


def test_a_published_job_is_told_not_to_rent_its_second_machine_and_which_keys_change_that(reports, capsys) -> None:
    found = planned(capsys, "v100")
    assert marked(found, "this stack")["keys"] == {"job.maxSteps": 50_000}
    assert found["advice"][0].startswith("Do not rent the second machine: 20.0 h and $129 instead of 27.8 h and $364.")
    assert "cluster.nodes: 1" in found["advice"][0] and "job.maxSteps: 100000" in found["advice"][0]


def test_every_gpu_count_port_and_precision_that_is_sold_has_a_row_and_what_was_never_measured_says_so(reports, capsys):
    rows = planned(capsys, "p100")["rows"]
    wanted = set(product(["P100", "V100"], [1, 2], [1, 2, 4]))
    assert {(row["gpu"], row["gpus"], row["nodes"]) for row in rows} == wanted
    assert {row["port_mbps"] for row in rows if row["nodes"] == 1} == {100, 1000}
    assert {row["port_mbps"] for row in rows if row["nodes"] > 1} == {1000}
    assert {(row["gpu"], row["precision"]) for row in rows if not row["measured"]} == {("P100", "mixed")}


def test_budget_and_deadline_choose_by_the_upper_limit(reports, capsys) -> None:
    found = planned(capsys, "v100", budget=250.0, deadline=24.0)
    assert marked(found, "fastest within budget")["dollars"][2] <= 250
    assert marked(found, "cheapest before deadline")["hours"][2] <= 24
    assert "Cheapest within 1 hours: nothing for sure." in planned(capsys, "v100", deadline=1.0)["advice"]
    assert plan.plan.code(stack="v100", budget=250.0) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("Stack v100: 51,200,000 samples;") and "List prices of 2026-05" in shown


def test_an_own_program_that_never_ran_has_prices_and_no_hours(reports, capsys) -> None:
    found = planned(capsys, "torchrun-local")
    assert not any(row["measured"] for row in found["rows"]) and all(row["per_hour"] for row in found["rows"])
    assert "make up STACK=torchrun-local" in found["advice"][0]
    assert plan.plan.code(stack="torchrun-local") == 0
    assert "2.508 an hour" in capsys.readouterr().out


def test_a_torn_report_and_one_of_a_version_that_said_less_are_no_basis_and_an_older_one_is(reports, capsys) -> None:
    leave(reports, "torchrun-local")
    torn, less = (reports / "torchrun-local" / name / "report.json" for name in ("ffffffffffff-0a", "eeeeeeeeeeee-0a"))
    for path, text in ((torn, '{"run": "ffff'), (less, '{"run": "eeeeeeeeeeee", "seconds_per_step": 2.0}')):
        path.parent.mkdir()
        path.write_text(text)
    assert plan.newest_run("torchrun-local").run == "0123456789ab"
    assert f"{torn} is no whole report" in capsys.readouterr().err


def test_an_own_program_takes_the_pace_of_its_run_on_one_machine_and_a_lower_limit_on_more(reports, capsys) -> None:
    leave(reports, "torchrun-local")
    found = planned(capsys, "torchrun-local")["rows"]
    rows = {(row["nodes"], row["port_mbps"]): row for row in found if row["measured"]}
    steps = config.read_file("torchrun-local").job.max_steps
    assert rows[1, 1000]["steps"] == 2 * steps and rows[2, 1000]["steps"] == steps
    assert rows[1, 1000]["hours"][1] == pytest.approx(0.5 + 2 * steps * 2.0 / 3600, abs=0.01)
    assert rows[2, 1000]["hours"][2] is None
    assert {row["gpu"] for row in rows.values()} == {"P100"}


@pytest.mark.parametrize(
    ("mbps", "one_s"),
    [
        (1000, 0.6),
        (500, 1.4),
    ],  # T = t/3 + V/B: 1.4 s with 1.2 s on the wire leave 0.6 s for computing; with 2.4 s no time.
)
def test_a_run_on_two_machines_whose_traffic_was_measured_predicts_one_and_four(reports, capsys, mbps, one_s) -> None:
    network = {"measured": {"bytes_per_step": 150e6, "preflight_mbps": mbps}, "expected": {}}
    answers = [{"question": bottleneck.QUESTION, "answer": "", "figures": network}]
    leave(reports, "torchrun-local", nodes=[{}, {}], world_size=4, seconds_per_step=1.4, answers=answers)
    rows = {row["nodes"]: row for row in planned(capsys, "torchrun-local")["rows"] if row["measured"]}
    assert rows[1]["seconds_per_step"] == pytest.approx(one_s)
    if mbps == 1000:
        assert rows[2]["seconds_per_step"] == 1.4 and rows[2]["exposed_share"] == pytest.approx(0.8 / 1.4)
        assert rows[4]["seconds_per_step"] == pytest.approx(0.2 + 1.4)


def test_a_price_in_another_currency_is_no_price(monkeypatch) -> None:
    answer = {"postTaxRecurringHourly": "9", "currencyShortName": "EUR"}
    monkeypatch.setattr(billing, "verify", lambda api, planned: answer)
    own = config.read_file("v100")
    quote = billing.quote(None, specs.LedgerSpec(mark="0" * 8, stack="v100", nodes=2, **own.cluster.order()))
    assert (quote.per_hour, quote.source) == (None, "the account's answer to verifyOrder is in EUR")


def test_epochs_take_longer_on_fewer_ranks_and_stay_as_many(reports, capsys) -> None:
    leave(reports, "texar-local", nodes=[{}, {}], world_size=4, unit="epoch", seconds_per_step=45.0)
    rows = {row["nodes"]: row for row in planned(capsys, "texar-local")["rows"] if row["measured"]}
    assert (rows[1]["steps"], rows[1]["seconds_per_step"]) == (8, 90)


@pytest.mark.parametrize(("stack", "told"), [("seawulf", "sells nothing"), ("v1000", "There is no stack")])
def test_what_cannot_be_planned_is_refused_in_a_sentence(stack, told, reports, capsys) -> None:
    assert plan.plan.code(stack=stack) == 2
    assert told in capsys.readouterr().err
