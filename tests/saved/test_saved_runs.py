"""Runs of strangers' programs of which no byte may get lost; more of them: `python -m tests.saved --cases 500`."""

import secrets
from dataclasses import replace

import pytest

from microcluster.display import run_text
from microcluster.remote.file_transfer import fetch_files
from microcluster.remote.inventory import inventory
from tests.saved.case import FINISHED, FORMS, Attempt, Case, case_of, play
from tests.saved.machines import STACK, Machines, Node

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
