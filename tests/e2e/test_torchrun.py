"""PyTorch over torchrun on the emulated SoftLayer account: account and kind know nothing of each other, and all else is as ever."""

import json
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from product import Product

pytestmark = [pytest.mark.containers, pytest.mark.timeout(1800)]

STACK = "torchrun-local"
ENOUGH_STEPS, MORE_STEPS, ENDLESS = 30, 50, 10_000
UP_LIMIT_S = 1200
KILL_RANK = (
    "grep -slz ^LOCAL_RANK=0$ /proc/[0-9]*/environ | sed s/environ/cmdline/ "
    "| xargs grep -sLz ^launch.rank_wrapper$ | cut -d/ -f3 | xargs kill -9"
)
"""The rank of a machine, and not the wrapper that waits for its end."""
FOUR_NODES = """
for node in 0 1 2 3; do
    NODE=$node python /run/agent launch.torchrun $node 4 2 127.0.0.9:48123 once sh -c 'echo "$RANK of $NODE by $MASTER_ADDR"' &
done
wait
"""
LEFT = "grep -slz ^MICROCLUSTER_RUN= /proc/[0-9]*/environ | wc -l"


@pytest.fixture(scope="module")
def product(renter: Product) -> Iterator[Product]:
    renter.edit_stack("AC1_16X120X100", "AC1_8X60X100", STACK)  # One rank on each machine: a start costs half.
    renter.edit_stack("--steps {maxSteps}", "--steps {maxSteps} --pace 0.2", STACK)  # To have time to kill a rank.
    renter.edit_stack("maxSteps: 240", f"maxSteps: {ENDLESS}\n    requirements: [humanize==4.9.0]", STACK)
    yield renter
    renter.run(f"make down STACK={STACK} DISCARD=1", 600)


@pytest.fixture(scope="module")
def broken(product: Product) -> dict[str, Any]:
    """The run after one of its ranks was killed."""
    with product.begun(f"make up STACK={STACK}") as up:
        product.wait_while(up, f"step {ENOUGH_STEPS}", lambda: product.shown_step() >= ENOUGH_STEPS)
        killed = product.plain(f"fab ssh --stack {STACK} gpu-1 -- '{KILL_RANK}'", 60)
        assert killed.returncode == 0, killed.stdout + killed.stderr
        assert up.wait(UP_LIMIT_S) != 0
    return product.status(STACK)


@pytest.fixture(scope="module")
def last_step(product: Product, broken: dict[str, Any]) -> int:
    """The last step of the run, to which `make up` has brought it."""
    last = broken["step"] + MORE_STEPS
    product.edit_stack(f"maxSteps: {ENDLESS}", f"maxSteps: {last}", STACK)
    again = product.run(f"make up STACK={STACK}", UP_LIMIT_S)
    assert again.returncode == 0, again.stdout + again.stderr
    return last


def test_a_rank_that_dies_ends_the_run_with_its_cause_and_nothing_is_left_on_any_node(product, broken):
    assert (broken["state"], broken["cause"]) == ("failed", "rank-died")
    assert "gpu-1" in str(broken["reason"])
    for node in ("gpu-0", "gpu-1"):
        assert product.plain(f"fab ssh --stack {STACK} {node} -- '{LEFT}'", 60).stdout.strip() == "0"


def test_the_same_command_goes_on_from_the_newest_checkpoint(product: Product, last_step: int) -> None:
    now = product.status(STACK)
    assert (now["state"], now["step"], now["max_steps"]) == ("finished", last_step, last_step)
    shown = product.plain(f"fab ssh --stack {STACK} gpu-0 -- cat /data/runs/{now['run']}/progress.jsonl", 60).stdout
    resumed = [event["step"] for event in map(json.loads, shown.splitlines()) if event["event"] == "resuming"]
    assert len(resumed) == 1
    assert ENOUGH_STEPS - 20 <= resumed[0] < last_step


def test_the_preflight_reduced_over_all_ranks_with_equal_versions(product: Product, last_step: int) -> None:
    checks = json.loads(product.plain(f"fab status --stack {STACK} --preflight --json", 60).stdout)
    rows = {row["check"]: row for row in checks["checks"]}
    assert rows["torch"]["verdict"] == rows["ranks"]["verdict"] == rows["allreduce"]["verdict"] == "ok"


def test_the_image_holds_the_requirement_and_a_machine_reaches_nothing_else_outside(product, last_step):
    def there(command: str) -> subprocess.CompletedProcess[str]:
        return product.plain(f"fab ssh --stack {STACK} gpu-0 -- {shlex.quote(command)}", 60)

    found = there("docker exec torchrun python -c 'import humanize; print(humanize.__version__)'")
    assert found.stdout.strip() == "4.9.0", found.stderr
    other = there("curl -s -o /dev/null -w '%{http_code}' ${PIP_INDEX_URL%/*}/files/https/example.com/")
    assert other.stdout.strip() == "403"
    assert there("curl -s --max-time 5 https://example.com/").returncode != 0


def test_fetch_downloads_the_run_with_its_checkpoint(product: Product, last_step: int) -> None:
    answer = product.plain(f"fab fetch --stack {STACK} --json", 300)
    assert list(Path(json.loads(answer.stdout)["folder"]).rglob(f"tmodel_{last_step}.pt"))


def test_the_report_draws_losses_that_fall_and_tokens_per_second(product: Product, last_step: int) -> None:
    report = json.loads(product.plain(f"fab report --stack {STACK} --json", 120).stdout)
    for curve in ("train", "validation"):
        losses = [loss for _, loss in report["curves"][curve]]
        assert losses[-1] < losses[0] - 1
    assert report["metrics"]["tokens_per_second"] > 0


def test_ranks_follow_the_order_of_four_nodes_and_rank_0_is_on_the_first(last_step: int) -> None:
    said = alone(FOUR_NODES)
    assert sorted(said.stdout.splitlines()) == [f"{rank} of {rank // 2} by 127.0.0.9" for rank in range(8)]


def test_what_a_rank_says_at_last_stands_last() -> None:
    failed = alone(
        "python /run/agent launch.torchrun 0 1 1 127.0.0.9:48123 once sh -c 'echo no such corpus >&2; exit 3'"
    )
    *_, own, of_torchrun = failed.stderr.splitlines()
    assert (failed.returncode, own) == (1, "no such corpus")
    assert "exitcode: 3" in of_torchrun


def alone(line: str) -> subprocess.CompletedProcess[str]:
    """Run a line in a container of the image that knows no other machine."""
    agent = Path(__file__).parents[2] / "agent"
    container = ("docker", "run", "--rm", "--network", "none", "-v", f"{agent}:/run/agent:ro")
    argv = (*container, "microcluster/torch:current", "sh", "-c", line)
    return subprocess.run(argv, capture_output=True, text=True, timeout=300, check=False)
