"""The language model on the emulated account: it trains on two machines, is stopped, goes on to its end and is reported."""

import json
from typing import Any

import pytest
from one_cluster import NODES, STACK, Renter
from traces import processes_of

from tests.product import ASK_LIMIT_S

pytestmark = [pytest.mark.containers, pytest.mark.timeout(1800)]

STOPPED_AFTER, MORE, ENDLESS = 2, 3, 1000
"""Epochs: before the run is stopped, after that, and so many that the stop does not come too late."""
SUMS = "cd /data && sha256sum debian_en/ptb.train.txt runs/{run}/language_model.py"


@pytest.fixture(scope="module")
def stopped(renter: Renter) -> dict[str, Any]:
    """Output of `fab stop` for the run."""
    renter.take(stack="texar-local")
    renter.edit_stack("kind: texar  ", f"kind: texar\n    maxSteps: {ENDLESS}\n    hiddenSize: 32  ", STACK)
    with renter.begun(f"make up STACK={STACK}") as up:
        renter.wait_while(up, f"epoch {STOPPED_AFTER}", lambda: renter.shown_step() >= STOPPED_AFTER)
    return json.loads(renter.plain(f"fab stop --stack {STACK} --json", ASK_LIMIT_S).stdout)


@pytest.fixture(scope="module")
def finished(renter: Renter, stopped: dict[str, Any]) -> dict[str, Any]:
    """The run, which `make up` has brought to its last epoch."""
    last = renter.status(STACK)["step"] + MORE
    renter.edit_stack(f"maxSteps: {ENDLESS}", f"maxSteps: {last}", STACK)
    now = renter.brought_to_its_end()
    assert (now["state"], now["step"], now["max_steps"]) == ("finished", last, last)
    return now


def test_a_run_is_stopped_on_every_machine(renter: Renter, stopped: dict[str, Any]) -> None:
    now = renter.status(STACK)
    assert (stopped["stopped"], stopped["unclear"], now["state"]) == (True, {}, "stopped")
    assert processes_of(now["run"]) == []


def test_the_same_command_resumes_from_the_newest_epoch_to_the_test_perplexity(renter, finished):
    events = renter.events(finished["run"])
    (resumed,) = [event["step"] for event in events if event["event"] == "resuming"]
    assert STOPPED_AFTER - 1 <= resumed < finished["step"]
    assert "stand-in language model, not Texar" in next(one["value"] for one in events if one["event"] == "trainer")


def test_every_machine_has_the_same_configuration_and_texts(renter: Renter, finished: dict[str, Any]) -> None:
    first, second = (renter.on(node, SUMS.format(run=finished["run"])) for node in NODES)
    assert first == second
    assert len(first.splitlines()) == 2


def test_the_report_has_falling_perplexities_and_the_time_of_an_epoch(renter, finished):
    report = renter.reported(STACK, finished)
    for curve in ("perplexity", "validation_perplexity"):
        steps, values = zip(*report["curves"][curve], strict=True)
        assert steps == tuple(range(1, finished["step"] + 1)), curve
        assert values[-1] < max(values) / 1.05, curve  # So small a model may get worse before it gets better.
    assert 1 < report["metrics"]["test_perplexity"] < 500
    assert report["metrics"]["words_per_second"] > 0
    assert report["seconds_per_step"] > 0


def test_runs_are_compared_by_their_reports_alone(renter: Renter, finished: dict[str, Any]) -> None:
    path = renter.fetched(STACK, finished) / "report.json"
    facts = json.loads(path.read_text())
    other = path.parent.with_name("000000000000")
    other.mkdir()
    alone = {"run": other.name, "nodes": facts["nodes"][:1], "seconds_per_step": facts["seconds_per_step"] / 2}
    (other / path.name).write_text(json.dumps(facts | alone))
    said = renter.plain(f"fab compare 0000 {facts['run'][:6]}", 60)
    assert said.returncode == 0, said.stderr
    assert "s/epoch" in said.stdout and "better buy" in said.stdout


def test_the_run_is_at_home_with_its_last_checkpoint(renter: Renter, finished: dict[str, Any]) -> None:
    folder = renter.fetched(STACK, finished)
    assert list(folder.rglob(f"model.ckpt-{finished['step']}.index"))
    assert (folder / "language_model.py").is_file()
