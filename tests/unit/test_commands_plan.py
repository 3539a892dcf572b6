"""`fab plan`: the better buy for a stack's job, from published runs or from the newest run of the stack itself."""

import json
from itertools import product
from pathlib import Path

import pytest

from microcluster.accounts.softlayer import billing, specs
from microcluster.analysis import bottleneck
from microcluster.commands import plan
from microcluster.config import stack as config

ROOT = Path(__file__).parents[2]
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


def test_a_recorded_job_is_told_on_which_link_its_second_machine_is_worth_its_price(reports, capsys) -> None:
    found = planned(capsys, "v100")
    assert marked(found, "this stack")["keys"] == {"job.maxSteps": 50_000}
    assert found["advice"][0] == (
        "Whether to rent the second machine depends on the link: above 4.4 Gb/s it saves a fifth of the hours, "
        "on no link that was recorded it is cheaper."
    )
    assert found["advice"][1:5] == [
        "  On 2 Gb/s: 1.53 to 2.05 s per step, 23.4 to 35.2 h, $312 to $468.",
        "  On 5 Gb/s: 0.647 to 0.943 s per step, 11.2 to 19.8 h, $156 to $260.",
        "  On 0.1 Gb/s: 28.9 to 42.2 s per step, 404.1 to 592.6 h, $5,265 to $7,709.",
        "  With 1 machine: 0.533 to 0.652 s per step, 17.1 to 24.9 h, $116 to $162.",
    ]


def test_on_a_link_where_the_whole_band_is_worse_the_second_machine_is_not_to_be_rented(reports, capsys) -> None:
    (first, *_) = planned(capsys, "v100", link=2.1)["advice"]
    assert first.startswith(
        "Do not rent the second machine: 20.0 (17.1 to 24.9) h and $129 ($116 to $162) instead of 27.0 ("
    )
    assert "cluster.nodes: 1" in first and "job.maxSteps: 100000" in first
    assert planned(capsys, "v100", link=5.0)["advice"][0].startswith("Whether to rent the second machine depends")


def test_json_has_the_limits_of_a_step_for_each_link_and_over_all_of_them(reports, capsys) -> None:
    own = marked(planned(capsys, "v100"), "this stack")
    assert own["seconds_per_step"] == {"low": 0.6466, "usual": 1.695, "high": 42.1812}
    assert own["links"]["2 Gb/s"] == {"seconds_per_step": {"low": 1.5255, "usual": 1.695, "high": 2.051}}
    assert own["links"].keys() == {"2 Gb/s", "5 Gb/s", "0.1 Gb/s"}
    known = marked(planned(capsys, "v100", link=5.3), "this stack")
    assert known["seconds_per_step"] == own["links"]["5 Gb/s"]["seconds_per_step"] and len(known["links"]) == 1


def test_four_machines_were_never_recorded_and_have_a_lower_limit(reports, capsys) -> None:
    rows = [row for row in planned(capsys, "v100")["rows"] if row["measured"] and row["nodes"] == 4]
    assert {(row["seconds_per_step"]["high"], row["hours"][2], row["budget"]) for row in rows} == {(None, None, None)}


def test_a_run_to_a_loss_has_steps_hours_and_dollars_with_their_limits(reports, capsys) -> None:
    own = marked(planned(capsys, "v100", to_loss=2.0, link=2.0), "this stack")
    assert (own["steps"], own["steps_limits"]) == (9553, [7571, 9553, 14952])
    assert own["hours"][0] < own["hours"][1] < own["hours"][2] and own["dollars"] == [78, 104, 208]
    assert plan.plan.code(stack="v100", to_loss=2.0) == 0
    assert "to a validation loss of 2, 7,751,952 to 15,309,937 samples" in capsys.readouterr().out


def test_a_batch_whose_losses_nobody_recorded_has_no_row_to_a_loss(reports, capsys) -> None:
    rows = planned(capsys, "v100", to_loss=2.0)["rows"]
    assert {row["gpus"] * row["nodes"] for row in rows if not row["measured"] and row["precision"] == "mixed"} >= {8}
    assert {row["steps"] for row in rows if row["measured"]} == {9553, 19106, 38211}


@pytest.mark.parametrize(
    ("stack", "option", "told"),
    [
        (
            "v100",
            {"to_loss": 1.2},
            "docs/cost.md says what was recorded. For the steps of the stack file: fab plan --stack v100",
        ),
        (
            "texar-p100",
            {"to_loss": 2.0},
            "nobody recorded how long its job takes to a validation loss of 2, so there is no number",
        ),
        (
            "v100",
            {"link": 1.0},
            "not recorded on a link of 1 Gb/s, so there is no number; recorded: 2 Gb/s, 5 Gb/s, 0.1 Gb/s",
        ),
        ("texar-p100", {"link": 2.0}, "not recorded on a link of 2 Gb/s, so there is no number; recorded: none"),
    ],
)
def test_what_was_not_recorded_has_no_number(stack, option, told, reports, capsys) -> None:
    assert plan.plan.code(stack=stack, **option) == 2
    assert told in capsys.readouterr().err


def test_every_gpu_count_port_and_precision_that_is_sold_has_a_row_and_what_was_never_measured_says_so(reports, capsys):
    rows = planned(capsys, "p100")["rows"]
    wanted = set(product(["P100", "V100"], [1, 2], [1, 2, 4]))
    assert {(row["gpu"], row["gpus"], row["nodes"]) for row in rows} == wanted
    assert {row["port_mbps"] for row in rows if row["nodes"] == 1} == {100, 1000}
    assert {row["port_mbps"] for row in rows if row["nodes"] > 1} == {1000}
    assert {(row["gpu"], row["precision"]) for row in rows if not row["measured"]} == {("P100", "mixed")}


def test_budget_and_deadline_choose_by_the_upper_limit(reports, capsys) -> None:
    found = planned(capsys, "v100", budget=250.0, deadline=30.0)
    assert (
        marked(found, "fastest within budget")["dollars"][2] < marked(found, "fastest within budget")["budget"] <= 250
    )
    assert marked(found, "cheapest before deadline")["hours"][2] <= 30
    assert "Cheapest within 1 hours: nothing for sure." in planned(capsys, "v100", deadline=1.0)["advice"]
    assert plan.plan.code(stack="v100", budget=250.0) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("Stack v100: 51,200,000 samples;") and "Estimates of 2026-05, without tax." in shown


def test_the_page_shows_what_the_command_prints(reports, capsys) -> None:
    command, *shown = (ROOT / "docs" / "cost.md").read_text().partition("```text\n")[2].partition("```")[0].splitlines()
    assert command == "$ fab plan --stack v100 --budget 250 --deadline 30"
    assert plan.plan.code(stack="v100", budget=250.0, deadline=30.0) == 0
    printed = capsys.readouterr().out
    assert [line for line in shown if line not in printed and line != "..."] == []


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
    usual = {nodes: row["seconds_per_step"]["usual"] for nodes, row in rows.items()}
    assert usual[1] == pytest.approx(one_s)
    if mbps == 1000:
        assert usual[2] == 1.4 and rows[2]["exposed_share"] == pytest.approx(0.8 / 1.4)
        assert usual[4] == pytest.approx(0.2 + 1.4)
        assert rows[4]["seconds_per_step"]["high"] == pytest.approx(1.17 * 1.6), "as slow as the slowest published pair"


def test_a_price_in_another_currency_is_no_price(monkeypatch) -> None:
    answer = {"postTaxRecurringHourly": "9", "currencyShortName": "EUR"}
    monkeypatch.setattr(billing, "verify", lambda api, planned: answer)
    own = config.read_file("v100")
    quote = billing.quote(None, specs.LedgerSpec(mark="0" * 8, stack="v100", nodes=2, **own.cluster.order()))
    assert (quote.per_hour, quote.source) == (None, "the account's answer to verifyOrder is in EUR")


def test_epochs_take_longer_on_fewer_ranks_and_stay_as_many(reports, capsys) -> None:
    leave(reports, "texar-local", nodes=[{}, {}], world_size=4, unit="epoch", seconds_per_step=45.0)
    rows = {row["nodes"]: row for row in planned(capsys, "texar-local")["rows"] if row["measured"]}
    assert (rows[1]["steps"], rows[1]["seconds_per_step"]["usual"]) == (8, 90)


@pytest.mark.parametrize(("stack", "told"), [("seawulf", "sells nothing"), ("v1000", "There is no stack")])
def test_what_cannot_be_planned_is_refused_in_a_sentence(stack, told, reports, capsys) -> None:
    assert plan.plan.code(stack=stack) == 2
    assert told in capsys.readouterr().err
