"""The programs of the gallery, one after the other on one rented cluster: each loses a rank by kill -9 and comes to its end."""

import json
import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from product import Product

from core.waiting import wait_until

pytestmark = [pytest.mark.containers, pytest.mark.timeout(1800)]

STACK = "lightning-local"
UP_LIMIT_S, FETCH_LIMIT_S = 1200, 60
HOROVOD, SCRIPT = "https://github.com/horovod/horovod", "examples/tensorflow2/tensorflow2_synthetic_benchmark.py"
COMMIT = "2626dc87a3a8eb8fb7d2216198ce45bce0f9e65a"
REQUIREMENTS = "[lightning==2.5.5, transformers==4.57.1, accelerate==1.15.0]"
"""Of all programs, so that one image serves them."""
KILL_RANK = (
    "grep -slzE '^((OMPI_COMM_WORLD_)?LOCAL_RANK=0|NODE_RANK=1)$' /proc/[0-9]*/environ | sed s/environ/cmdline/ "
    "| xargs -r grep -sLz ^launch.rank_wrapper$ | xargs -r grep -slzE '(^|/){script}$' | cut -d/ -f3 | xargs kill -9"
)
"""The rank of a machine, and neither the wrapper that waits for its end nor the preflight's."""


@dataclass(frozen=True)
class Program:
    """One program of the gallery, by its stack file.

    Attributes:
        kill_at: the step at which a rank is killed.
        last: the step at which it ends; the stack files train longer than a test has to.
        checkpoint: files of the checkpoint of {step}, which all nodes have once the run goes on from it.
    """

    stack: str
    kill_at: int
    last: int
    checkpoint: tuple[str, ...]
    script: str = "train.py"


PROGRAMS = [
    Program(stack="lightning-local", kill_at=2, last=10, checkpoint=(r"epoch={step}-step=\d+\.ckpt",)),
    Program(
        stack="huggingface-local",
        kill_at=45,
        last=150,
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
        kill_at=45,
        last=150,
        checkpoint=tuple(rf"step-{{step}}/{name}" for name in (r"\.metadata", r"__0_0\.distcp", r"__1_0\.distcp")),
    ),
    Program(stack="jax-local", kill_at=45, last=200, checkpoint=(r"model-{step}\.npz",)),
    Program(stack="keras-local", kill_at=3, last=24, checkpoint=(r"checkpoint-{step}\.keras",)),
]


@pytest.fixture(scope="module")
def product(renter: Product) -> Iterator[Product]:
    yield renter
    renter.run(f"make down STACK={STACK} DISCARD=1", 600)


def take(product: Product, stack: str, last: int | None = None) -> None:
    """Give the rented stack the container and the job of another stack file, with one rank on each machine, until step ``last``."""
    path = product.folder / "stacks" / f"Pulumi.{STACK}.yaml"
    salt = re.findall(r"^encryptionsalt: .*\n", path.read_text(), re.MULTILINE)
    text = (path.with_name(f"Pulumi.{stack}.yaml")).read_text() if stack != STACK else path.read_text()
    own = "" if "kind: command" in text else "|    requirements"
    text = re.sub(rf"^(encryptionsalt{own}): .*\n", "", text, flags=re.MULTILINE)
    text = text.replace("AC1_16X120X100", "AC1_8X60X100").replace("--devices 2", "--devices 1")
    if last is not None:
        text = re.sub(r"(maxSteps:) \d+", rf"\1 {last}", text)
    if "kind: torchrun" in text:
        text = text.replace("    script:", f"    requirements: {REQUIREMENTS}\n    script:")
    path.write_text(text + "".join(salt))


def kill(product: Product, script: str) -> bool:
    """Kill the rank of the second machine, and say whether there was one."""
    command = KILL_RANK.format(script=script)
    return product.plain(f'fab ssh --stack {STACK} gpu-1 -- "{command}"', 60).returncode == 0


def files_on(product: Product, node: str, run: str) -> list[str]:
    """Return the files in the log folder of a node, by their paths."""
    shown = product.plain(f"fab ssh --stack {STACK} {node} -- find /data/runs/{run}/logdir -type f", 60).stdout
    return shown.split()


def resumed_from(product: Product, run: str) -> list[int]:
    """Return the steps of the checkpoints that a run has gone on from."""
    shown = product.plain(f"fab ssh --stack {STACK} gpu-0 -- cat /data/runs/{run}/progress.jsonl", 60).stdout
    return [event["step"] for event in map(json.loads, shown.splitlines()) if event["event"] == "resuming"]


def finished(product: Product) -> dict[str, Any]:
    """Bring the run to its end by `make up`, and return its status."""
    again = product.run(f"make up STACK={STACK}", UP_LIMIT_S)
    assert again.returncode == 0, again.stdout + again.stderr
    return product.status(STACK)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda one: one.stack)
def test_a_program_loses_a_rank_and_goes_on_from_its_checkpoint_on_all_nodes(product, program):
    take(product, program.stack, program.last)
    with product.begun(f"make up STACK={STACK}") as up:
        product.wait_while(up, f"step {program.kill_at}", lambda: product.shown_step() >= program.kill_at)
        assert kill(product, program.script)
        assert up.wait(UP_LIMIT_S) != 0
    broken = product.status(STACK)
    assert (broken["state"], broken["cause"]) == ("failed", "rank-died")

    now = finished(product)
    assert now["state"] == "finished"
    (step,) = resumed_from(product, now["run"])
    assert 0 <= step <= broken["step"]
    for node in ("gpu-0", "gpu-1") if "lightning" not in program.stack else ("gpu-1",):  # It keeps its newest alone.
        there = files_on(product, node, now["run"])
        for name in program.checkpoint:
            wanted = re.compile(f".*/{name.format(step=step)}")
            assert any(map(wanted.fullmatch, there)), f"{name} of step {step} is not on {node}: {there}"
    report = json.loads(product.plain(f"fab report --stack {STACK} --json", 120).stdout)
    losses = [loss for _, loss in report["curves"]["train"]]
    assert losses[-1] < losses[0]
    folder = Path(json.loads(product.plain(f"fab fetch --stack {STACK} --json", 300).stdout)["folder"])
    fetched = [path.as_posix() for path in folder.rglob("*") if path.is_file()]
    for name in program.checkpoint:
        wanted = re.compile(f".*/{name.replace('{step}', r'[0-9]+')}")
        assert any(map(wanted.fullmatch, fetched)), f"{name} is not among {fetched}"
    print(f"{program.stack}: loss {losses[0]} to {losses[-1]}, killed at {broken['step']}, resumed from {step}")


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


def test_the_published_benchmark_of_horovod_loses_a_rank_and_begins_again(product: Product, tmp_path: Path) -> None:
    text = benchmark_source(tmp_path / "horovod.git")
    take(product, stack="horovod-benchmark-local")
    script = product.home / "horovod" / SCRIPT
    script.parent.mkdir(parents=True)
    script.write_text(text)
    with product.begun(f"make up STACK={STACK}") as up:
        wait_until("a rank to kill", lambda: up.poll() is not None or kill(product, script.name), timeout_s=UP_LIMIT_S)
        assert up.wait(UP_LIMIT_S) != 0
    broken = product.status(STACK)
    assert (broken["state"], broken["cause"]) == ("failed", "rank-died")
    now = finished(product)
    assert (now["state"], now["step"], resumed_from(product, now["run"])) == ("finished", 2, [])
    report = json.loads(product.plain(f"fab report --stack {STACK} --json", 120).stdout)
    assert report["metrics"]["images"] > 0
