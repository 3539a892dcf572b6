"""How a run's commands start on its nodes: in the container, or on the machine in an environment of its own."""

import json
import subprocess
import sys

import pytest
import sample_spec
from sample_spec import MODELS, process
from supervised_run import carry_out, end_run, events_of, folder, hurry, start  # noqa: F401 - a fixture
from test_agent_processes import STEP

from agent import spec
from agent.launch import script_imports
from agent.supervise.run_context import runtime_of

ON_THE_MACHINE = {"runtime": "host", "container": None}


def runtime(tmp_path, **changes):
    sample_spec.write(tmp_path, **{"ssh": ["ssh", "-p", "22"], "program_folder": "/p", **changes})
    return runtime_of(spec.read(str(tmp_path / spec.FILE)))


def test_in_the_container_a_command_bears_the_runs_mark_only_where_it_has_to_end_with_the_run(tmp_path):
    inside = runtime(tmp_path)
    assert inside.here(["a"], True) == [
        "docker",
        "exec",
        "-e",
        "MICROCLUSTER_RUN=abcdef012345",
        "-i",
        "-w",
        "/p",
        "box",
        "a",
    ]
    assert inside.here(["a"], False) == ["docker", "exec", "-i", "-w", "/p", "box", "a"]
    assert inside.beyond("10.0.0.1", ["a", "b c"], True) == ["ssh", "-p", "22", "10.0.0.1", "a 'b c'"]


def test_on_the_machine_a_command_finds_the_runs_own_programs_first_and_bears_the_mark(tmp_path):
    programs = tmp_path / "environment" / "bin"
    programs.mkdir(parents=True)
    (programs / "show").write_text('#!/bin/sh\necho "$PWD $MICROCLUSTER_RUN $1"\n')
    (programs / "show").chmod(0o755)
    on_it = runtime(tmp_path, **ON_THE_MACHINE, environment=str(programs.parent), program_folder=str(tmp_path))
    outside = {"PATH": "/usr/bin:/bin", "MICROCLUSTER_RUN": "other"}
    for marked, mark in ((True, "abcdef012345"), (False, "")):
        there = ["sh", "-c", on_it.beyond("x", ["show", "a b"], marked)[-1]]
        for words in (on_it.here(["show", "a b"], marked), there):
            assert subprocess.check_output(words, text=True, env=outside) == f"{tmp_path} {mark} a b\n"


def machine_run(folder, *processes, **changes):  # noqa: F811
    """Carry out a run without containers; what makes its environment notes on which machine it did."""
    ready = f"mkdir -p {folder}/environment/bin; ln -sf {sys.executable} {folder}/environment/bin/python; echo made >> {folder}/made"
    own = {
        "environment": str(folder / "environment"),
        "make_environment": ["sh", "-c", ready],
        "program_folder": str(folder),
    }
    changes.setdefault("ssh", ["sh", "-c", 'eval "$2"', "ssh"])
    changes.setdefault("end", ["sh", "-c", "echo '{\"left\": []}'"])
    return carry_out(
        folder, processes=list(processes), preflight_skipped="not here", **{**ON_THE_MACHINE, **own, **changes}
    )


def test_a_run_without_containers_makes_its_environment_on_every_node_and_trains_in_it(folder):  # noqa: F811
    whole = "import os; os.write(1, os.environb[b'MICROCLUSTER_RUN'] + b'\\n')"  # In one piece: both nodes write to this file.
    told = f'python -c "{whole}" >> {folder}/begun; {STEP}'
    outcome = machine_run(folder, *(process("sh", "-c", told, node=node) for node in (0, 1)))
    assert outcome.reason == "there is no checkpoint of step 3"
    assert (folder / "made").read_text() == "made\n" * 2
    assert (folder / "begun").read_text() == f"{folder.name}\n" * 2


def test_an_environment_that_cannot_be_made_ends_the_run_with_the_node_and_the_last_lines(folder):  # noqa: F811
    outcome = machine_run(
        folder, process("true"), make_environment=["sh", "-c", "echo no matching distribution; exit 3"]
    )
    assert (outcome.state, outcome.cause) == ("failed", "environment")
    assert (
        outcome.reason
        == "making the environment of the program on gpu-0 ended with exit code 3: no matching distribution"
    )
    assert json.loads((folder / "failure.json").read_text())["lines"] == ["no matching distribution"]
    assert end_run(folder)["ended"] == 0


def test_a_module_that_the_script_imports_and_nobody_has_ends_the_run_before_the_preflight(folder):  # noqa: F811
    script = folder / "program.py"
    script.write_text("import os\nfrom no_such_package.part import one\n")
    words = ["python", script_imports.__file__, str(script)]
    outcome = machine_run(folder, process("true"), imports=words)
    assert (outcome.state, outcome.cause) == ("failed", "environment")
    assert "program.py" in outcome.reason and "No module named 'no_such_package'" in outcome.reason
    assert not (folder / "preflight.json").exists()


def notes_its_end(role, log):
    return f"trap 'echo {role} >> {log}; exit 0' TERM; while :; do sleep 0.1; done"


def test_roles_end_one_after_the_other_in_their_order(folder):  # noqa: F811
    log = folder / "ends"
    roles = ("worker", "server", "scheduler")
    waiting = [process("sh", "-c", notes_its_end(role, log), role=role, ends_run=False) for role in reversed(roles)]
    fails = process("sh", "-c", "sleep 2; exit 7", role="worker")
    outcome = machine_run(folder, *waiting, fails, stop_order=list(roles))
    assert outcome.reason == "worker on gpu-0 ended with exit code 7"
    assert log.read_text().split() == list(roles)


def test_a_node_that_does_not_prove_the_end_is_written_down(folder):  # noqa: F811
    machine_run(folder, process("sh", "-c", "exit 7"), end=["sh", "-c", "echo no route to host; exit 255"])
    told = [(one["node"], one["text"]) for one in events_of(folder, "not-ended")]
    assert told == [("gpu-1", "no answer: no route to host")]


@pytest.mark.parametrize(
    ("way", "said"),
    [
        (
            'eval "$(echo "$2" | sed "/for file/s,/drive/,/full/,g")"',
            "the drive has not taken checkpoint 3: another machine sees 0 of its 6 bytes there; is it full?",
        ),
        (
            'case $2 in *"for file"*) exit 255 ;; *) eval "$2" ;; esac',
            "whether the drive has taken checkpoint 3 is not known: the other machine does not answer",
        ),
    ],
    ids=["full", "silent"],
)
def test_a_run_whose_last_checkpoint_nobody_else_sees_on_the_drive_has_failed(folder, tmp_path, way, said):  # noqa: F811
    shared = tmp_path / "drive" / "microcluster" / "mark" / folder.name
    hurry(folder, "checkpoints/checkpoint_watch.py", "TAKEN_S = 60.0", "TAKEN_S = 0.5")
    trains = process("sh", "-c", f"echo three > {shared}/model-3.pt; {STEP}")
    outcome = machine_run(folder, trains, shared=str(shared), ssh=["sh", "-c", way, "ssh"], **MODELS)
    assert (outcome.cause, outcome.reason) == ("not-copied", said)


@pytest.mark.parametrize("same", [True, False])
def test_checkpoints_on_a_drive_are_chosen_once_and_every_node_has_to_see_them(folder, tmp_path, same):  # noqa: F811
    shared = tmp_path / "drive" / "microcluster" / "mark" / folder.name
    shared.mkdir(parents=True)
    (shared / "model-2.pt").write_text("two")
    if not same:
        hurry(folder, "supervise/shared_folder.py", "SEEN_TIMEOUT_S = 20", "SEEN_TIMEOUT_S = 0")
    goes_on = process("sh", "-c", f"cat {spec.CHECKPOINT} > {folder}/read; {STEP}")
    view = "" if same else "/elsewhere"
    ssh = ["sh", "-c", f'eval "$(echo "$2" | sed s,{tmp_path}/drive,{tmp_path}/drive{view},g)"', "ssh"]
    outcome = machine_run(folder, process("false"), resume_processes=[goes_on], shared=str(shared), ssh=ssh, **MODELS)
    assert (folder / "logdir").resolve() == shared
    if same:
        assert (folder / "read").read_text() == "two"
        assert outcome.reason == "there is no checkpoint of step 3"
        [taken] = events_of(folder, "copied")
        assert (taken["step"], taken["to"]) == (2, "the drive")
    else:
        assert outcome.cause == "shared-folder"
        assert "gpu-1 sees" in outcome.reason and outcome.reason.endswith("see that it mounts the same drive")
