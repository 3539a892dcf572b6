"""A program of one's own on the emulated account: it trains, comes home, is reported, and makes room for another one."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from product import Product

pytestmark = [pytest.mark.containers, pytest.mark.timeout(1800)]

STACK = "horovod-local"
STEPS, ENDLESS = 200, 10_000
UP_LIMIT_S = 1200
BENCHMARK = """
import os
import horovod.tensorflow as hvd
import tensorflow as tf

hvd.init()
print("rank", hvd.rank(), "found", os.environ["FLAVOR"])
for number in range(6):
    hvd.allreduce(tf.ones([1000]), name="ones")
    if hvd.rank() == 0:
        print("Iter #%d: %.1f img/sec per GPU" % (number, 10.5 + number))
"""
BENCHMARK_JOB = """    kind: horovod
    source: benchmark
    script: benchmark.py
    progress: 'Iter #(?P<step>\\d+): (?P<images>[\\d.]+) img/sec'
    environment: {FLAVOR: 7}
"""


@pytest.fixture(scope="module")
def product(renter: Product) -> Product:
    renter.edit_stack("AC1_16X120X100", "AC1_8X60X100", STACK)  # One rank on each machine: a start costs half.
    renter.edit_stack("maxSteps: 600", f"maxSteps: {STEPS}", STACK)
    return renter


@pytest.fixture(scope="module")
def trained(product: Product) -> dict[str, Any]:
    """The run that `make up` has brought to its end."""
    done = product.run(f"make up STACK={STACK}", UP_LIMIT_S)
    assert done.returncode == 0, done.stdout + done.stderr
    now = product.status(STACK)
    assert (now["state"], now["step"], now["max_steps"]) == ("finished", STEPS, STEPS)
    return now


def test_the_run_is_at_home_with_its_checkpoints(product: Product, trained: dict[str, Any]) -> None:
    folder = product.fetched(STACK, trained)
    assert list(folder.rglob(f"model-{STEPS}.npz"))
    assert (folder / "program.json").is_file()


def test_the_report_draws_the_programs_own_metrics(product: Product, trained: dict[str, Any]) -> None:
    report = product.reported(STACK, trained)
    steps, values = zip(*report["curves"]["accuracy"], strict=True)
    assert steps == tuple(sorted(set(steps))) and steps[-1] == STEPS
    assert values[-1] > max(0.9, values[0])
    assert report["metrics"]["accuracy"] == values[-1]
    losses = [loss for _, loss in report["curves"]["train"]]
    assert losses[-1] < losses[0]


def test_make_down_names_unfetched_files_and_a_fetch_brings_them_all(product, trained):
    below = f"/data/runs/{trained['run']}/in_container/logdir"
    write = f"echo 0.5 > {below}/ranks.csv; truncate -s 11M {below}/large.bin"
    product.plain(f"fab ssh --stack {STACK} gpu-1 -- '{write}'", 60)
    refused = product.run(f"make down STACK={STACK}", 300)
    assert refused.returncode != 0
    assert "1 small file" in refused.stderr
    assert "1 above the limits" in refused.stderr
    listed = product.plain(f"fab fetch --stack {STACK} --unfetched", 120).stdout
    assert "logdir/ranks.csv (4 bytes, small file on gpu-1)" in listed
    assert "logdir/large.bin (11.5 MB, above the limits on gpu-1)" in listed
    answer = product.plain(f"fab fetch --stack {STACK} --everything --json", 300)
    folder = Path(json.loads(answer.stdout)["folder"])
    assert (folder / "logdir" / "ranks.csv").read_text() == "0.5\n"
    assert (folder / "logdir" / "large.bin").stat().st_size == 11 * 2**20
    listed = product.plain(f"fab fetch --stack {STACK} --unfetched --json", 120)
    assert [one["unfetched"] for one in json.loads(listed.stdout)] == [[]]


def test_an_update_asks_before_it_replaces_a_run_at_work(product, trained):
    product.edit_stack(f"maxSteps: {STEPS}", f"maxSteps: {ENDLESS}", STACK)
    with product.begun(f"make up STACK={STACK}") as up:
        product.wait_while(up, f"step {STEPS + 1}", lambda: product.shown_step() > STEPS)
    product.edit_stack("--pace 0.1", "--pace 0.2", STACK)
    refused = product.run(f"make up STACK={STACK}", UP_LIMIT_S)
    assert refused.returncode != 0
    assert f"end run {trained['run']}, which is at work, and start another" in refused.stderr
    assert product.status(STACK)["state"] == "running"
    product.plain(f"fab stop --stack {STACK}", 120)
    assert product.plain(f"fab fetch --stack {STACK} --everything", 300).returncode == 0


@pytest.fixture(scope="module")
def benchmark(product: Product, trained: dict[str, Any]) -> dict[str, Any]:
    """Another program on the same machines: it saves nothing, and says neither a loss nor its last step."""
    source = product.folder / "benchmark"
    source.mkdir()
    (source / "benchmark.py").write_text(BENCHMARK)
    path = product.folder / "stacks" / f"Pulumi.{STACK}.yaml"
    job = re.compile(r"    kind: horovod\n(    .*\n)+")
    path.write_text(job.sub(lambda _: BENCHMARK_JOB, path.read_text()))
    again = product.run(f"make up STACK={STACK}", UP_LIMIT_S)
    assert again.returncode == 0, again.stdout + again.stderr
    return product.status(STACK)


def test_a_benchmark_without_checkpoints_or_loss_finishes_by_its_exit_code(product, benchmark):
    assert (benchmark["state"], benchmark["step"], benchmark["max_steps"]) == ("finished", 5, None)
    assert product.reported(STACK, benchmark)["metrics"]["images"] == 15.5


def test_a_variable_of_the_stack_file_reaches_the_ranks_of_all_nodes(product, benchmark):
    log = product.plain(f"fab ssh --stack {STACK} gpu-0 -- cat /data/runs/{benchmark['run']}/job.log", 60).stdout
    assert sorted(re.findall(r"rank (\d) found 7", log)) == ["0", "1"]


def test_one_command_fetches_a_finished_run_cancels_everything_and_proves_it(
    product: Product, benchmark: dict[str, Any]
) -> None:
    over = product.run(f"make up STACK={STACK} DOWN=1", UP_LIMIT_S)
    assert over.returncode == 0, over.stdout + over.stderr
    assert f"run {benchmark['run']} is in " in over.stdout and "all hashes agree" in over.stdout
    assert "fetching what is only on the machines" not in over.stdout, "nothing was left to fetch for the cancellation"
    assert re.search(r"open billing items with mark \w{8}: 0", over.stdout), over.stdout
