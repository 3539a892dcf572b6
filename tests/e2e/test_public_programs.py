"""Public programs from their clones, without a change: each by a stack file of ours loses a rank by kill -9 and comes to its end.

A variable names each clone, a folder or a git directory that holds the commit; a test is skipped without it.
"""

import os
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from one_cluster import UP_LIMIT_S, Renter, renting
from pictures import draw
from traces import processes_of

from tests.product import OF_THE_CLONES

pytestmark = [pytest.mark.containers, pytest.mark.timeout(2400)]

GIT_LIMIT_S = 120
LICENSES = Path("/usr/share/common-licenses")
"""Texts that a package of Debian ships, base-files."""


@dataclass(frozen=True)
class Clone:
    """A public repository, and the stack file that trains a program of it.

    Attributes:
        variable: names where the repository lies on this computer.
        folder: what the stack file calls it, in the home.
        parts: what is checked out of a large repository; nothing for all of it.
        kill_at: the step at which a rank is killed.
        last: the step with which the program has to end.
        checkpoint: the path of a file of each checkpoint, in the folder that is fetched.
    """

    stack: str
    variable: str
    folder: str
    commit: str
    script: str
    kill_at: int
    last: int
    checkpoint: str
    parts: tuple[str, ...] = ()

    def take(self, home: Path) -> None:
        """Clone the commit to where the stack file has it."""
        target = home / self.folder
        git("clone", "--quiet", "--no-checkout", "--shared", os.environ[self.variable], str(target))
        if self.parts:
            git("-C", str(target), "sparse-checkout", "set", *self.parts)
        git("-C", str(target), "checkout", "--quiet", self.commit)


CLONES = [
    Clone(
        stack="nanogpt-local",
        variable="NANOGPT_SOURCE",
        folder="nanoGPT",
        commit="3adf61e154c3fe3fca428ad6bc3818b27a3b8291",
        script="train.py",
        kill_at=120,
        last=400,
        checkpoint="ckpt.pt",
    ),
    Clone(
        stack="imagenet-local",
        variable="PYTORCH_EXAMPLES_SOURCE",
        folder="examples",
        commit="77f55b912142e11fcfdf5b530231fb9c52f181e8",
        script="main.py",
        kill_at=3,
        last=5,
        checkpoint="checkpoint.pth.tar",
        parts=("imagenet",),
    ),
    Clone(
        stack="run-clm-local",
        variable="TRANSFORMERS_SOURCE",
        folder="transformers",
        commit="d5d87934c2294da88802fdef7dbd22b89f38f2be",
        script="run_clm.py",
        kill_at=60,
        last=300,
        checkpoint="trainer_state.json",
        parts=("examples/pytorch/language-modeling",),
    ),
]


def git(*words: str) -> None:
    done = subprocess.run(["git", *words], capture_output=True, text=True, timeout=GIT_LIMIT_S, check=False)
    assert done.returncode == 0, f"git {words[0]}: {done.stderr}"


def make_data(home: Path) -> None:
    """Make what the comments of the stack files say."""
    draw(home / "pictures")
    (home / "text").mkdir()
    (home / "text" / "text.txt").write_bytes((LICENSES / "GPL-3").read_bytes())
    (home / "text" / "tokenizer_config.json").write_text('{"tokenizer_class": "ByT5Tokenizer"}\n')


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Renter]:
    """Return a copy of the project with an account of its own, and what the programs learn from."""
    with renting(tmp_path_factory.mktemp("product"), OF_THE_CLONES) as account:
        make_data(account.home)
        yield account


@pytest.fixture
def rented(clone: Clone, account: Renter) -> Iterator[Renter]:
    """Return the project with the program's clone; the block's end cancels its machines."""
    clone.take(account.home)
    own = replace(account, stack=clone.stack)
    yield own
    own.run(f"make down STACK={clone.stack}", UP_LIMIT_S)


def param(clone: Clone) -> Any:
    reason = f"no {clone.variable}: a clone of {clone.folder} that holds commit {clone.commit}"
    return pytest.param(
        clone, id=clone.stack, marks=pytest.mark.skipif(clone.variable not in os.environ, reason=reason)
    )


@pytest.mark.parametrize("clone", [param(one) for one in CLONES])
def test_a_public_program_that_loses_a_rank_resumes_from_its_own_checkpoint(clone: Clone, rented: Renter) -> None:
    began = time.monotonic()
    with rented.begun(f"make up STACK={clone.stack}") as up:
        rented.lose_a_rank(up, clone.script, clone.kill_at)
    broken = rented.status(clone.stack)
    assert (broken["state"], broken["cause"]) == ("failed", "rank-died")
    assert processes_of(broken["run"]) == []

    now = rented.brought_to_its_end()
    assert (now["state"], now["step"]) == ("finished", clone.last)
    (step,) = rented.resumed_from(now["run"])
    assert 0 < step <= broken["step"]
    losses = [loss for _, loss in rented.reported(clone.stack, now)["curves"]["train"]]
    assert losses[-1] < losses[0]
    assert list(rented.fetched(clone.stack, now).rglob(clone.checkpoint))
    took_s = time.monotonic() - began
    print(
        f"{clone.stack}: {took_s:.0f} s, loss {losses[0]} to {losses[-1]}, killed at {broken['step']}, resumed from {step}"
    )
