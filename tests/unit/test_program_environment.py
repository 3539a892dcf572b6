"""The environment of a user's own program on a machine without containers: the script as it runs there, on real environments."""

import subprocess
import sys
from ast import literal_eval
from pathlib import Path

import pytest
from launching import launched, on_gpus
from test_jobs_kind import HOROVOD


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    """Return an environment that a person has made, with a package and a program of theirs."""
    folder = tmp_path / "mx"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "theirs.py").write_text("WHERE = 'theirs'\n")
    (packages / "both.py").write_text("WHERE = 'theirs'\n")
    program = folder / "bin" / "show"
    program.write_text(
        f"#!{folder}/bin/python\nimport both, sys, theirs\nprint(both.WHERE, theirs.WHERE, sys.prefix)\n"
    )
    program.chmod(0o755)
    return folder


def made(tmp_path: Path, python: Path) -> Path:
    """Return the environment that the script makes for a run with this interpreter, in a folder of this test."""
    run = launched(on_gpus(HOROVOD | {"python": str(python)}, "another"), on_machines=True)
    *shell, script = run.document.program.make_environment
    here = script.replace(run.path, str(tmp_path / "run"))
    subprocess.run([*shell, here], check=True, timeout=120)
    return tmp_path / "run" / "environment"


def test_a_persons_own_environment_is_extended_with_its_packages_and_its_programs(theirs: Path, tmp_path: Path) -> None:
    environment = made(tmp_path, theirs / "bin" / "python")
    (packages,) = environment.glob("lib/python*/site-packages")
    (packages / "both.py").write_text("WHERE = 'the run'\n")
    said = subprocess.check_output([environment / "bin" / "show"], text=True, env={"PATH": "/usr/bin:/bin"})
    assert said.split("\n")[0] == f"the run theirs {environment}"


def test_an_environment_that_sees_the_system_keeps_seeing_it(tmp_path: Path) -> None:
    folder = tmp_path / "over"
    subprocess.run([sys.executable, "-m", "venv", "--system-site-packages", "--without-pip", folder], check=True)
    ask = "import sys; print([path for path in sys.path if path.endswith('-packages')])"
    before = subprocess.check_output([folder / "bin" / "python", "-c", ask], text=True)
    after = subprocess.check_output(
        [made(tmp_path, folder / "bin" / "python") / "bin" / "python", "-c", ask], text=True
    )
    assert set(literal_eval(before)) < set(literal_eval(after))
