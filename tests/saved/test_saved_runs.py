"""Runs of strangers' programs of which no byte may get lost; more of them: `python -m tests.saved --cases 500`."""

import json
import secrets
import shutil
import subprocess
import threading
from dataclasses import replace

import pytest

from agent.formats.checkpoints.log_folder import checkpoints_of_run
from agent.supervise.checkpoint_watch import CheckpointWatch
from agent.supervise.health_rules import HealthRules
from agent.supervise.prepare import prepare
from microcluster.display import run_text
from microcluster.jobs.run_spec import decided
from microcluster.remote import job
from microcluster.remote.errors import RemoteError
from microcluster.remote.file_transfer import fetch_files
from microcluster.remote.inventory import inventory
from tests.saved.case import FINISHED, FORMS, Attempt, Case, case_of, play
from tests.saved.machines import STACK, Forked, Machines, Node
from tests.saved.program import npz

SEED, CASES = secrets.randbelow(10**6), 24


@pytest.mark.parametrize("number", range(CASES))
def test_every_byte_of_a_run_is_fetched_or_named(tmp_path, number):
    case = case_of(SEED, number)
    played = play(case, tmp_path)
    assert played.flaws == [], "\n".join([f"python -m tests.saved --seed {SEED} --case {number}", *played.log])


def test_cases_have_all_kinds_of_programs_machines_and_ends():
    cases = [case_of(7, number) for number in range(500)]
    assert {case.form for case in cases} == set(FORMS)
    assert {(case.nodes, case.shared) for case in cases} == {
        (1, False),
        *((n, s) for n in (2, 3) for s in (False, True)),
    }
    assert {len(case.attempts) for case in cases} == {1, 2, 3, 4}
    assert any(case.attempts[-1].ends != FINISHED for case in cases)


ALL_THREE = Attempt(saves=3, until=None, rotates=None, looks=frozenset({0}), ends=FINISHED, replaced=None)
LOOP = Case(1, 1, 1, False, "loop", False, frozenset({"in", "out"}), None, False, (), (ALL_THREE,))
"""A plain loop that saves an archive, the state of its random numbers and links, and finishes."""


def test_what_a_plain_loop_saves_is_asked_about_and_fetched(tmp_path):
    played = play(LOOP, tmp_path)
    assert played.flaws == [] and played.outcome.checkpoints == (100, 200, 300)
    asked = next(line for line in played.log if line.startswith("asked: "))
    assert "3 newest checkpoint, 6 checkpoint" in asked
    here = {path.parent.name + "/" + path.name for path in (tmp_path / "artifacts").rglob("ckpt-*/*")}
    assert here == {
        f"ckpt-{step}/{name}" for step in (100, 200, 300) for name in ("model.npz", "rng_state.pt", "vocab.bin")
    }


def test_a_finished_run_whose_newest_checkpoint_is_torn_says_so_at_once(tmp_path):
    played = play(replace(LOOP, attempts=(replace(ALL_THREE, until=1),)), tmp_path)
    assert played.flaws == [] and played.outcome.state == "finished"
    said = run_text.remark(played.outcome, STACK)
    assert said.startswith("the newest checkpoint, of step 400, is suspected: ckpt-400/model.npz is torn")
    assert said.endswith("fab fetch --everything --stack saved")


def test_a_program_finds_the_state_before_a_torn_one(tmp_path, monkeypatch):
    monkeypatch.setattr(subprocess, "Popen", Forked)
    machines = Machines(tmp_path / "machines", 2, shared=False, pattern=r"ckpt\.npz", keep=())
    run = machines.opened()
    prepare(run)
    run.emit({"event": "train", "step": 100, "loss": 2.0})
    file = machines.logdir(0) / "ckpt.npz"
    file.write_bytes(npz(b"first"))
    whole = file.read_bytes()
    watch = CheckpointWatch(run, HealthRules(0.0, run.spec), threading.Event())
    watch.look()
    run.emit({"event": "train", "step": 200, "loss": 1.0})
    file.write_bytes(whole[:50])
    run = machines.opened()
    prepare(run)
    assert (run.resumed, run.resumed_from) == (100, str(file))
    assert file.read_bytes() == whole == (machines.logdir(1) / "ckpt.npz").read_bytes()
    told = [json.loads(line) for line in (machines.run_folder(0) / "progress.jsonl").read_text().splitlines()]
    assert [event["step"] for event in told if event["event"] in ("checkpoint", "copied", "resuming")] == [
        100,
        100,
        100,
    ]
    assert "ckpt.npz is torn" in next(event["text"] for event in told if event["event"] == "passed_over")


def save_parts(machines, run, step, nodes):
    """Let two ranks of each node save their part."""
    run.emit({"event": "train", "step": step, "loss": 2.0})
    for rank in range(2 * nodes):
        part = machines.logdir(rank // 2) / f"step-{step}" / f"rank_{rank}.pt"
        part.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(f"{rank} of {2 * nodes} at {step}".encode())


def test_a_run_goes_on_with_fewer_nodes_and_with_more_again(tmp_path, monkeypatch):
    monkeypatch.setattr(subprocess, "Popen", Forked)
    pattern = FORMS["ranks"]
    machines = Machines(tmp_path / "machines", 3, shared=False, pattern=pattern, keep=(), resume_on="any")
    ids = {decided(replace(machines.facts, hosts=machines.facts.hosts[:n])).run for n in (1, 2, 3)}
    assert len(ids) == 1, "another number of nodes is the same run"
    run = machines.opened()
    prepare(run)
    save_parts(machines, run, 100, 3)
    CheckpointWatch(run, HealthRules(0.0, run.spec), threading.Event()).look(True)
    save_parts(machines, run, 200, 3)  # Parts that nobody has gathered when the machines are to go.
    fewer = replace(machines.facts, hosts=machines.facts.hosts[:2])
    worlds = job._go_on(machines.hosts()[0], fewer)
    shutil.rmtree(machines.disks[2])
    machines.use(2, (3, 6))
    run = machines.opened()
    prepare(run)
    assert (run.resumed, worlds) == (200, (3, 6))
    assert {path.name for path in machines.logdir(1).glob("step-200/*")} == {f"rank_{rank}.pt" for rank in range(6)}
    save_parts(machines, run, 300, 2)
    CheckpointWatch(run, HealthRules(0.0, run.spec), threading.Event()).look(True)
    assert checkpoints_of_run(run).newest_whole() == (300, "step-300"), "fewer ranks write fewer files"
    machines.replace(2)
    machines.use(3, (2, 3, 4, 6))
    run = machines.opened()
    prepare(run)
    assert run.resumed == 300
    assert {path.name for path in machines.logdir(2).glob("step-*/*")} == {f"rank_{rank}.pt" for rank in range(4)}


def test_parts_that_nobody_can_read_stop_the_removal_of_their_node(tmp_path):
    machines = Machines(tmp_path / "machines", 2, shared=False, pattern=FORMS["ranks"], keep=(), resume_on="any")
    shutil.rmtree(machines.disks[1])
    (machines.disks[1]).write_text("no folder")
    fewer = replace(machines.facts, hosts=machines.facts.hosts[:1])
    launcher = machines.hosts()[0]
    with pytest.raises(RemoteError, match="going on with run 0123456789ab on 1 node: what gpu-1 have of its"):
        job._go_on(launcher, fewer)
    machines.use(1)
    assert job._go_on(launcher, fewer) == (1, 2)


def test_names_of_any_length_come_by_one_command(tmp_path):
    """The line that sshd gives a shell is one argument, of 128 KiB at most."""

    class Counting(Node):
        asked = 0

        def output(self, *words, **options):
            Counting.asked += 1
            return super().output(*words, **options)

    machines = Machines(tmp_path / "machines", 1, shared=False, pattern=FORMS["file"], keep=())
    host = Counting(machines.facts.hosts[0], machines.disks[0], machines.disks[0])
    folder = machines.logdir(0) / ("a" * 240) / ("b" * 240)
    folder.mkdir(parents=True)
    for number in range(300):
        (folder / f"{number}").write_text(str(number))
    found = inventory([host], machines.facts)
    wanted, Counting.asked = [file for file in found.files if file.what == "small file"], 0
    done = fetch_files({"gpu-0": host}, wanted, tmp_path / "here", lambda count: None)
    assert (len(done.new), done.failed, Counting.asked) == (300, {}, 1)
