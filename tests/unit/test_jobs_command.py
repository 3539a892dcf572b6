"""The kind for any command: one process on each node, which is told where it is by its words and by its environment."""

import os
import re
import subprocess
import sys
from pathlib import Path

import launching
import pytest
from launching import on_gpus

from agent.run import document
from microcluster.config import stack as config
from microcluster.jobs.run_spec import RunFolder
from tests.product import free_port

ROOT = Path(__file__).parents[2]
JOB = {
    "kind": "command",
    "source": "examples/jax_distributed",
    "command": "python train.py --process {node} of {nodes} --each {slots} --at {first}:1 --folder '{logdir}/a b'",
    "checkpoints": r"model-(?P<step>\d+)\.npz",
    "resume": "--resume {checkpoint}",
}


def launched(*, on_machines: bool = False, nodes: int = 2, **job: object) -> RunFolder:
    return launching.launched(on_gpus(JOB | job, "torch", nodes=nodes), on_machines=on_machines, first=9)


def test_one_process_on_each_node_knows_its_place_and_goes_on_with_the_words_of_resume() -> None:
    folder = launched()
    for node, process in enumerate(folder.document.program.processes):
        place = ("python", "train.py", "--process", str(node), "of", "2", "--each", "2", "--at", "10.0.0.9:1")
        assert process.argv[-12:] == (*place, "--folder", f"{folder.path}/logdir/a b")
        told = {"MASTER_ADDR": "10.0.0.9", "MASTER_PORT": document.PORT, "NODE_RANK": str(node), "WORLD_SIZE": "2"}
        assert process.environment.items() >= told.items()
        assert (process.node, process.name, process.environment["PYTHONUNBUFFERED"]) == (node, f"node {node}", "1")
        assert process.argv[6] == "launch.rank_wrapper", "its end is noted"
    for process in (*folder.document.program.processes, *folder.document.program.collective):
        assert process.argv[:4] == ("sh", "-c", 'cd "$0" && exec "$@"', f"{folder.path}/program")
    assert {process.argv[-2:] for process in folder.document.program.resume_processes} == {
        ("--resume", document.CHECKPOINT)
    }


def test_its_python_is_the_interpreter_that_the_stack_file_names() -> None:
    folder = launched(python="python3.13")
    assert folder.document.program.processes[0].argv[8] == "python3.13"
    assert folder.document.program.imports[-1] == f"{folder.path}/program/train.py"
    assert launched(on_machines=True).document.program.processes[0].argv[8] == "python"


def test_a_command_that_is_no_script_of_python_is_started_as_it_is() -> None:
    program = launched(command="./train --id {node}").document.program
    assert program.processes[1].argv[-3:] == ("./train", "--id", "1")
    assert program.imports == ()


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        ({"command": "  "}, "job/command: "),
        ({"command": "train '"}, 'job/command: "train \'" cannot be split into words'),
        ({"command": "train {maxSteps}"}, "job/command: {maxSteps} cannot be filled in"),
        ({"script": "train.py"}, "job/script: unknown key"),
        ({"environment": {"NODE_RANK": "1"}}, "NODE_RANK is set by what starts the ranks"),
    ],
)
def test_a_command_that_cannot_start_is_refused_before_anything_is_ordered(job, expected) -> None:
    with pytest.raises(config.ConfigError, match=re.escape(expected)):
        launched(**job)


def test_in_the_preflight_every_node_hears_from_the_first_one_that_all_are_there() -> None:
    told = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": "3"}
    line = "from agent.launch.probe import NodeWorld; print(NodeWorld().allreduce(1) > 0)"
    common = {"cwd": ROOT, "stdout": subprocess.PIPE, "text": True}
    argv = [sys.executable, "-c", line]
    asked = [subprocess.Popen(argv, env={**told, "NODE_RANK": str(node)}, **common) for node in range(3)]
    assert [one.communicate(timeout=30)[0].strip() for one in asked] == ["True"] * 3
