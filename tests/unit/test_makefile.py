"""The Makefile's own decisions: what `make down` needs and what it leaves alone."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from microcluster.setup.environment import PROJECT


def make(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    plain = {name: text for name, text in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    return subprocess.run(("make", *words), cwd=folder, env=plain, capture_output=True, text=True, check=False)


def project(folder: Path, script: str) -> Path:
    """A folder with the Makefile, and a ``.venv`` whose fab is this script."""
    shutil.copy(PROJECT / "Makefile", folder)
    program = folder / ".venv" / "bin" / "fab"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return folder


def test_down_takes_the_environment_that_is_there_as_it_is(tmp_path: Path) -> None:
    folder = project(tmp_path, 'echo "$@"')
    done = make(folder, "down", "STACK=p100", "PYTHON=/there/is/none")
    assert (done.returncode, done.stdout.strip()) == (0, "down --stack p100")


def test_down_without_an_environment_says_that_the_account_was_not_asked(tmp_path: Path) -> None:
    folder = project(tmp_path, "exit 127")
    done = make(folder, "down", "STACK=p100", "PYTHON=false")
    assert done.returncode != 0
    assert "the account of stack p100 was not asked" in done.stdout


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("up",), "up --stack local"),
        (("up", "STACK=v100", "FETCH=1"), "up --stack v100 --fetch"),
        (("up", "DOWN=1"), "up --stack local --down"),
        (("up", "DOWN=0", "FETCH=no", "DISCARD=0"), "up --stack local"),
        (("preview", "DISCARD=1"), "preview --stack local"),
        (("setup",), "setup"),
    ],
)
def test_every_other_target_prepares_the_environment_first(tmp_path: Path, words: tuple[str, ...], line: str) -> None:
    folder = project(tmp_path, 'echo "$@"')
    done = make(folder, *words, "PYTHON=echo prepared by")
    assert done.stdout.splitlines() == ["prepared by -m microcluster.setup.venv", line]
