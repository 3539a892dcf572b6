"""What every stack of this repository declares and runs, as files: a change that nobody meant is seen before somebody's run is another one.

`FREEZE=1 pytest tests/unit/test_frozen.py` writes the files anew; read the difference before you commit it.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pulumi
import pytest
import test_program
from launching import launched, run_id

from agent.run.document import plain
from microcluster.config import stack as config
from microcluster.core.home import Home

ROOT = Path(__file__).parents[2]
FROZEN = ROOT / "tests" / "frozen"
CLONES = {"horovod-benchmark-local", "nanogpt-local", "imagenet-local", "run-clm-local"}
"""Stacks whose program is a clone that is not here."""
STACKS = sorted({path.stem.partition(".")[2] for path in config.STACKS.glob("Pulumi.*.yaml")} - CLONES)
HELP = """
import contextlib, io, json, re
from fabric.main import program
def fab(*words):
    with contextlib.redirect_stdout(io.StringIO()) as said:
        program.run(["fab", *words], exit=False)
    return said.getvalue()
print(json.dumps({name: fab("--help", name) for name in re.findall("(?m)^  ([a-z][a-z.-]*)", fab("--list"))}))
"""


def stack_of(name: str) -> config.Stack:
    return config.parse(name, config.read_values(config.path_of(name)), ordering=False)


def resources(name: str) -> dict[str, Any]:
    """Return {URN: inputs} of what the program declares; a step's standard input is opened."""
    made = test_program.declared(config.with_files(stack_of(name)))
    urns = pulumi.runtime.settings.get_monitor().get_registered_resources()
    return {urn: opened(made[urn.rpartition("::")[2]].inputs) for urn in urns if urn.rpartition("::")[2] in made}


def opened(inputs: Any) -> Any:
    if isinstance(inputs, dict) and isinstance(inputs.get("stdin"), str):
        return {**inputs, "stdin": json.loads(inputs["stdin"])}
    return inputs


def document(name: str) -> dict[str, Any]:
    """Return the run's id and its document on nodes from 10.0.0.1 on."""
    folder = launched(stack_of(name))
    return {"run": run_id(folder), "document": plain(folder.document)}


def commands(_: str) -> dict[str, str]:
    """Return {command: what `fab --help` says of it}, from one process of its own."""
    done = subprocess.run([sys.executable, "-c", HELP], cwd=ROOT, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def text(found: Any) -> str:
    plain = json.dumps(found, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    return plain.replace(str(Home.of().root), "HOME").replace(str(Path.home()), "~")


@pytest.mark.parametrize(
    ("made", "name"),
    [
        *((resources, stack) for stack in STACKS),
        *((document, stack) for stack in STACKS),
        (commands, "fab"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_nothing_has_changed_that_nobody_meant(made: Callable[[str], Any], name: str) -> None:
    file, now = FROZEN / f"{made.__name__}.{name}.json", text(made(name))
    if os.environ.get("FREEZE"):
        file.write_text(now)
    assert file.exists(), f"new: FREEZE=1 pytest {Path(__file__).name} writes {file.name}"
    assert json.loads(now) == json.loads(file.read_text())


def test_no_file_is_left_of_a_stack_that_is_gone() -> None:
    named = {file.name.split(".")[1] for file in FROZEN.glob("*.json")}
    assert named == {*STACKS, "fab"}
