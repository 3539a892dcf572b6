"""How a run's commands start on its nodes: in the container, or on the machine in an environment of its own."""

import json
import subprocess
import sys

import pytest
import sample_spec
from sample_spec import MODELS, process
from supervised_run import events_of, write_job
from test_agent_processes import STEP

from agent.launch import script_imports
from agent.run import document
from agent.run.context import runtime_of
from agent.supervise import checkpoint_watch, shared_folder, supervisor

ON_THE_MACHINE = {"runtime": "host", "container": None}


def runtime(tmp_path, **changes):
    sample_spec.write(tmp_path, **{"ssh": ["ssh", "-p", "22"], "program_folder": "/p", **changes})
    return runtime_of(document.read(str(tmp_path / document.FILE)))


def test_in_the_container_a_command_bears_the_runs_mark_only_where_it_has_to_end_with_the_run(tmp_path):
    inside = runtime(tmp_path)
    assert " ".join(inside.here(["a"], True)) == "docker exec -e MICROCLUSTER_RUN=abcdef012345 -i -w /p box a"
    assert " ".join(inside.here(["a"], False)) == "docker exec -i -w /p box a"
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


@pytest.fixture
def machine_run(folder, ended):
    """Return what carries out a run without containers; what makes its environment notes that it did."""
    made = f"mkdir -p {folder}/environment/bin; ln -sf {sys.executable} {folder}/environment/bin/python; echo made"
    usual = {**ON_THE_MACHINE, "environment": str(folder / "environment"), "program_folder": str(folder)}
    usual |= {"make_environment": ["sh", "-c", f"{made} >> {folder}/made"], "ssh": ["sh", "-c", 'eval "$2"', "ssh"]}
    usual |= {"end": ["sh", "-c", "echo '{\"left\": []}'"], "preflight_skipped": "not here"}

    def carry_out(*processes, **changes):
        write_job(folder, processes=list(processes), **{**usual, **changes})
        return ended(supervisor.carry_out)

    return carry_out


def test_a_run_without_containers_makes_its_environment_on_every_node_and_trains_in_it(folder, machine_run):
    whole = "import os; os.write(1, os.environb[b'MICROCLUSTER_RUN'] + b'\\n')"  # In one piece: both nodes write to this file.
    told = f'python -c "{whole}" >> {folder}/begun; {STEP}'
    assert machine_run(*(process("sh", "-c", told, node=node) for node in (0, 1))) is None
    assert (folder / "made").read_text() == "made\n" * 2
    assert (folder / "begun").read_text() == f"{folder.name}\n" * 2


def test_an_environment_that_cannot_be_made_ends_the_run_with_the_node_and_the_last_lines(folder, machine_run):
    fails = ["sh", "-c", "echo no matching distribution; exit 3"]
    cause, why, lines = machine_run(process("true"), make_environment=fails)
    assert (cause, lines) == ("environment", ["no matching distribution"])
    assert why.endswith("program on gpu-0 ended with exit code 3: no matching distribution")


def test_a_module_that_is_not_found_is_a_note_and_the_program_decides(folder, machine_run):
    script = folder / "program.py"
    script.write_text("import sys\nsys.path.append('lib')\nfrom no_such_package.part import one\n")
    assert machine_run(process("true"), imports=["python", script_imports.__file__, str(script)]) is None
    rows = json.loads((folder / "preflight.json").read_text())["rows"]
    (noted,) = [one for one in rows if one["check"] == "imports of the program"]
    assert noted["verdict"] == "note" and noted["found"].endswith("does not find no_such_package of program.py")


def notes_its_end(role, log):
    return f"trap 'echo {role} >> {log}; exit 0' TERM; while :; do sleep 0.1; done"


def test_roles_end_one_after_the_other_in_their_order(folder, machine_run):
    log = folder / "ends"
    roles = ("worker", "server", "scheduler")
    waiting = [process("sh", "-c", notes_its_end(role, log), role=role, ends_run=False) for role in reversed(roles)]
    fails = process("sh", "-c", "sleep 2; exit 7", role="worker")
    _, why, _ = machine_run(*waiting, fails, stop_order=list(roles))
    assert why == "worker on gpu-0 ended with exit code 7"
    assert log.read_text().split() == list(roles)


def test_a_node_that_does_not_prove_the_end_is_written_down(folder, machine_run):
    machine_run(process("sh", "-c", "exit 7"), end=["sh", "-c", "echo no route to host; exit 255"])
    told = [(one["node"], one["text"]) for one in events_of(folder, "not-ended")]
    assert told == [("gpu-1", "no answer: no route to host")]


@pytest.fixture
def drive(folder, tmp_path, monkeypatch):
    """Return the run's folder on a drive; nobody waits for what another node does not see at once."""
    monkeypatch.setattr(checkpoint_watch, "TAKEN_S", 0.5)
    monkeypatch.setattr(shared_folder, "SEEN_TIMEOUT_S", 0)
    return tmp_path / "drive" / "microcluster" / "mark" / folder.name


@pytest.mark.parametrize(
    ("way", "said"),
    [
        (
            'case $2 in *"for file"*) sed s,/drive/,/full/,g | eval "$2" ;; *) eval "$2" ;; esac',
            "another machine sees 0 of its 6 bytes there",
        ),
        ('case $2 in *"for file"*) exit 255 ;; *) eval "$2" ;; esac', "the other machine does not answer"),
    ],
    ids=["full", "silent"],
)
def test_a_run_whose_last_checkpoint_nobody_else_sees_on_the_drive_has_failed(drive, machine_run, way, said):
    trains = process("sh", "-c", f"echo three > {drive}/model-3.pt; {STEP}")
    cause, why, _ = machine_run(trains, shared=str(drive), ssh=["sh", "-c", way, "ssh"], **MODELS)
    assert (cause, said in why) == ("not-copied", True)


@pytest.mark.parametrize("same", [True, False])
def test_checkpoints_on_a_drive_are_chosen_once_and_every_node_has_to_see_them(drive, folder, machine_run, same):
    drive.mkdir(parents=True)
    (drive / "model-2.pt").write_text("two")
    goes_on = process("sh", "-c", f"cat {document.CHECKPOINT} > {folder}/read; {STEP}")
    view = "" if same else "/elsewhere"
    ssh = ["sh", "-c", f'eval "$(echo "$2" | sed s,/drive/,/drive{view}/,g)"', "ssh"]
    found = machine_run(process("false"), resume_processes=[goes_on], shared=str(drive), ssh=ssh, **MODELS)
    assert (folder / "logdir").resolve() == drive
    if same:
        assert (folder / "read").read_text() == "two"
        assert found is None
        [taken] = events_of(folder, "copied")
        assert (taken["step"], taken["to"]) == (2, "the drive")
    else:
        assert found[0] == "shared-folder"
        assert "gpu-1 sees" in found[1] and found[1].endswith("see that it mounts the same drive")
