"""The programs of the gallery, one after the other on one rented cluster: each loses a rank by kill -9 and comes to its end."""

import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from one_cluster import NODES, STACK, Renter, renting
from traces import processes_of

from tests.product import OF_THE_GALLERY

pytestmark = [pytest.mark.containers, pytest.mark.timeout(1800)]

FETCH_LIMIT_S = 60
HOROVOD, SCRIPT = "https://github.com/horovod/horovod", "examples/tensorflow2/tensorflow2_synthetic_benchmark.py"
COMMIT = "2626dc87a3a8eb8fb7d2216198ce45bce0f9e65a"


@dataclass(frozen=True)
class Program:
    """One program of the gallery, by its stack file.

    Attributes:
        kill_at: the step at which a rank is killed.
        last: the step at which it ends; the stack files train longer than a test has to.
        checkpoint: files of the checkpoint of {step}, which all nodes have once the run goes on from it.
        checks: what the preflight of its kind has found in order.
    """

    stack: str
    kill_at: int
    last: int
    checkpoint: tuple[str, ...]
    script: str = "train.py"
    checks: tuple[str, ...] = ()


PROGRAMS = [  # Those on one image beside one another: bringing another takes longer than their training.
    Program(stack="lightning-local", kill_at=2, last=6, checkpoint=(r"epoch={step}-step=\d+\.ckpt",)),
    Program(
        stack="huggingface-local",
        kill_at=25,
        last=50,
        checkpoint=tuple(
            rf"checkpoint-{{step}}/{name}"
            for name in (
                "model.safetensors",
                "optimizer.pt",
                "trainer_state.json",
                r"rng_state_0\.pth",
                "rng_state_1.pth",
            )
        ),
    ),
    Program(
        stack="fsdp-local",
        kill_at=25,
        last=50,
        checkpoint=tuple(rf"step-{{step}}/{name}" for name in (r"\.metadata", r"__0_0\.distcp", r"__1_0\.distcp")),
    ),
    Program(stack="jax-local", kill_at=25, last=50, checkpoint=(r"model-{step}\.npz",)),
    Program(
        stack="torchrun-local",
        kill_at=30,
        last=60,
        checkpoint=(r"tmodel_{step}\.pt",),
        checks=("torch", "ranks", "allreduce"),
    ),
    Program(stack="keras-local", kill_at=3, last=8, checkpoint=(r"checkpoint-{step}\.keras",)),
]


@pytest.fixture(scope="module")
def renter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Renter]:
    """Return a copy of the project with an account of its own, so that the gallery runs beside all others."""
    with renting(tmp_path_factory.mktemp("product"), OF_THE_GALLERY) as renter:
        yield renter


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda one: one.stack)
def test_a_program_that_loses_a_rank_resumes_on_all_nodes(renter, program):
    renter.take(program.stack, program.last)
    with renter.begun(f"make up STACK={STACK}") as up:
        renter.lose_a_rank(up, program.script, program.kill_at)
    broken = renter.status(STACK)
    assert (broken["state"], broken["cause"]) == ("failed", "rank-died")
    assert processes_of(broken["run"]) == []

    now = renter.brought_to_its_end()
    assert now["state"] == "finished"
    (step,) = renter.resumed_from(now["run"])
    assert 0 <= step <= broken["step"]
    for node in NODES if "lightning" not in program.stack else ("gpu-1",):  # It keeps its newest alone.
        there = renter.on(node, f"find /data/runs/{now['run']}/in_container/logdir -type f").split()
        for name in program.checkpoint:
            wanted = re.compile(f".*/{name.format(step=step)}")
            assert any(map(wanted.fullmatch, there)), f"{name} of step {step} is not on {node}: {there}"
    losses = [loss for _, loss in renter.reported(STACK, now)["curves"]["train"]]
    assert losses[-1] < losses[0]
    files = [path.as_posix() for path in renter.fetched(STACK, now).rglob("*") if path.is_file()]
    for name in program.checkpoint:
        wanted = re.compile(f".*/{name.replace('{step}', r'[0-9]+')}")
        assert any(map(wanted.fullmatch, files)), f"{name} is not among {files}"
    assert all(renter.checks()[name] == "ok" for name in program.checks)
    print(f"{program.stack}: loss {losses[0]} to {losses[-1]}, killed at {broken['step']}, resumed from {step}")


def test_a_machine_reaches_nothing_outside_but_the_package_index(renter: Renter) -> None:
    page = "${PIP_INDEX_URL%/*}/files/https/example.com/"
    assert renter.on("gpu-0", f"curl -s -o /dev/null -w '%{{http_code}}' {page}") == "403"
    assert renter.on("gpu-0", "curl -s --max-time 5 https://example.com/ || echo refused") == "refused"


def benchmark_source(folder: Path) -> str:
    """Return the text of the published benchmark: from HOROVOD_SOURCE, a clone or a git directory, or from its public address."""
    named = os.environ.get("HOROVOD_SOURCE")
    if not named:
        subprocess.run(
            ["git", "init", "--bare", "-q", str(folder)], check=True, capture_output=True, timeout=FETCH_LIMIT_S
        )
        named = str(folder)
        fetch = ["git", "-C", named, "fetch", "-q", "--depth=1", "--filter=blob:none", HOROVOD, COMMIT]
        try:
            subprocess.run(fetch, check=True, capture_output=True, timeout=FETCH_LIMIT_S)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            pytest.skip(f"no HOROVOD_SOURCE, and {HOROVOD} cannot be reached: {error}")
    show = ["git", "-C", named, "show", f"{COMMIT}:{SCRIPT}"]
    return subprocess.run(show, check=True, capture_output=True, text=True, timeout=FETCH_LIMIT_S).stdout


def test_the_published_benchmark_of_horovod_loses_a_rank_and_begins_again(renter: Renter, tmp_path: Path) -> None:
    text = benchmark_source(tmp_path / "horovod.git")
    renter.take(stack="horovod-benchmark-local")
    script = renter.home / "horovod" / SCRIPT
    script.parent.mkdir(parents=True)
    script.write_text(text)
    with renter.begun(f"make up STACK={STACK}") as up:
        renter.lose_a_rank(up, script.name, 0)
    broken = renter.status(STACK)
    assert (broken["state"], broken["cause"]) == ("failed", "rank-died")
    now = renter.brought_to_its_end()
    assert (now["state"], now["step"], renter.resumed_from(now["run"])) == ("finished", 2, [])
    assert renter.reported(STACK, now)["metrics"]["images"] > 0
