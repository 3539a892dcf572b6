"""The language model on the emulated account: it trains on two machines, loses a rank, goes on, is stopped and is reported."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from product import Product

from core.waiting import wait_until

pytestmark = [pytest.mark.containers, pytest.mark.timeout(1800)]

STACK = "texar-local"
KILLED_AFTER, MORE, ENDLESS = 2, 2, 1000
"""Epochs: before a rank is killed, after the run was stopped, and so many that none of that comes too late."""
UP_LIMIT_S, TRAINS_LIMIT_S = 1200, 600
KILL_RANK = (
    "grep -slz ^OMPI_COMM_WORLD_LOCAL_RANK=0$ /proc/[0-9]*/environ | sed s/environ/cmdline/ "
    "| xargs grep -sLz ^launch.rank_wrapper$ | cut -d/ -f3 | xargs kill -9"
)
"""The rank of a machine, and not the wrapper that waits for its end."""
LEFT = "grep -slz ^MICROCLUSTER_RUN= /proc/[0-9]*/environ | wc -l"
SUMS = "cd /data && sha256sum debian_en/ptb.train.txt runs/*/language_model.py"


@pytest.fixture(scope="module")
def product(renter: Product) -> Iterator[Product]:
    renter.edit_stack("AC1_16X120X100", "AC1_8X60X100", STACK)  # One rank on each machine: a start costs half.
    renter.edit_stack("kind: texar  ", f"kind: texar\n    maxSteps: {ENDLESS}\n    hiddenSize: 32  ", STACK)
    yield renter
    renter.run(f"make down STACK={STACK} DISCARD=1", 600)


def on_node(product: Product, node: str, line: str) -> str:
    return product.plain(f"fab ssh --stack {STACK} {node} -- '{line}'", 60).stdout.strip()


@pytest.fixture(scope="module")
def broken(product: Product) -> dict[str, Any]:
    """The run after one of its ranks was killed."""
    with product.begun(f"make up STACK={STACK}") as up:
        product.wait_while(up, f"epoch {KILLED_AFTER}", lambda: product.shown_step() >= KILLED_AFTER)
        killed = product.plain(f"fab ssh --stack {STACK} gpu-1 -- '{KILL_RANK}'", 60)
        assert killed.returncode == 0, killed.stdout + killed.stderr
        assert up.wait(UP_LIMIT_S) != 0
    return product.status(STACK)


@pytest.fixture(scope="module")
def stopped(product: Product, broken: dict[str, Any]) -> dict[str, Any]:
    """What `fab stop` said of the run that had gone on."""
    resumed = product.plain(f"fab resume --stack {STACK}", 300)
    assert resumed.returncode == 0, resumed.stdout + resumed.stderr
    epoch = broken["step"]
    wait_until("the next epoch", lambda: product.status(STACK)["step"] > epoch, timeout_s=TRAINS_LIMIT_S, every_s=5)
    return json.loads(product.plain(f"fab stop --stack {STACK} --json", 120).stdout)


@pytest.fixture(scope="module")
def last_epoch(product: Product, stopped: dict[str, Any]) -> int:
    """The last epoch of the run, to which `make up` has brought it."""
    last = product.status(STACK)["step"] + MORE
    product.edit_stack(f"maxSteps: {ENDLESS}", f"maxSteps: {last}", STACK)
    again = product.run(f"make up STACK={STACK}", UP_LIMIT_S)
    assert again.returncode == 0, again.stdout + again.stderr
    return last


def test_a_rank_that_dies_ends_the_run_with_its_cause_and_nothing_is_left_on_any_node(product, broken):
    assert (broken["state"], broken["cause"]) == ("failed", "rank-died")
    assert "gpu-1" in str(broken["reason"])
    assert [on_node(product, node, LEFT) for node in ("gpu-0", "gpu-1")] == ["0", "0"]


def test_a_run_that_goes_on_is_stopped_on_every_machine(product: Product, stopped: dict[str, Any]) -> None:
    assert (stopped["stopped"], stopped["unclear"], product.status(STACK)["state"]) == (True, {}, "stopped")
    assert [on_node(product, node, LEFT) for node in ("gpu-0", "gpu-1")] == ["0", "0"]


def test_every_machine_has_the_same_configuration_and_texts(product: Product, broken: dict[str, Any]) -> None:
    first, second = (on_node(product, node, SUMS) for node in ("gpu-0", "gpu-1"))
    assert first == second
    assert len(first.splitlines()) == 2


def test_the_same_command_goes_on_from_the_newest_epoch_to_the_test_perplexity(product, last_epoch):
    now = product.status(STACK)
    assert (now["state"], now["step"], now["max_steps"]) == ("finished", last_epoch, last_epoch)
    shown = on_node(product, "gpu-0", f"cat /data/runs/{now['run']}/progress.jsonl")
    events = [json.loads(line) for line in shown.splitlines()]
    resumed = [event["step"] for event in events if event["event"] == "resuming"]
    assert len(resumed) == 2, "after the dead rank, and after the stop"
    assert KILLED_AFTER - 1 <= resumed[0] <= resumed[1] < last_epoch
    assert "stand-in language model, not Texar" in next(one["value"] for one in events if one["event"] == "trainer")


def test_the_report_has_falling_perplexities_and_the_time_of_an_epoch(product: Product, last_epoch: int) -> None:
    report = json.loads(product.plain(f"fab report --stack {STACK} --json", 120).stdout)
    for curve in ("perplexity", "validation_perplexity"):
        steps, values = zip(*report["curves"][curve], strict=True)
        assert steps == tuple(range(1, last_epoch + 1)), curve
        assert values[-1] < values[0] / 1.2, curve
    assert 1 < report["metrics"]["test_perplexity"] < 500
    assert report["metrics"]["words_per_second"] > 0
    assert report["seconds_per_step"] > 0


def test_runs_are_compared_by_their_reports_alone(product: Product, last_epoch: int) -> None:
    path = next((product.folder / "artifacts" / STACK).glob("*/report.json"))
    facts = json.loads(path.read_text())
    other = path.parent.with_name("000000000000")
    other.mkdir()
    alone = {"run": other.name, "nodes": facts["nodes"][:1], "seconds_per_step": facts["seconds_per_step"] / 2}
    (other / path.name).write_text(json.dumps(facts | alone))
    said = product.plain(f"fab compare 0000 {facts['run'][:6]}", 60)
    assert said.returncode == 0, said.stderr
    assert "The second machine does not pay: an epoch takes " in said.stdout


def test_fetch_downloads_the_run_with_its_last_checkpoint(product: Product, last_epoch: int) -> None:
    answer = product.plain(f"fab fetch --stack {STACK} --json", 300)
    folder = Path(json.loads(answer.stdout)["folder"])
    assert list(folder.rglob(f"model.ckpt-{last_epoch}.index"))
    assert (folder / "language_model.py").is_file()
