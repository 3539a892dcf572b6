"""The folder of a person's program on the machines: a copy in the run's folder of each, with a folder for each machine."""

import json
import os
import shutil
import subprocess
import sys

import pytest

from agent.data.receive_tree import PLACED_AT
from agent.records.inventory import is_sent
from microcluster.remote.job import AGENT

MACHINES = ("n1", "n2", "n3")
IMAGE = bytes(range(256)) * 2000


@pytest.fixture
def launcher(tmp_path):
    """Return the launcher's run folder, with the agent; the other machines have nothing."""
    for name in ("n0", *MACHINES):
        (tmp_path / name).mkdir()
    shutil.copytree(AGENT, tmp_path / "n0" / "agent")
    program = tmp_path / "n0" / "agent" / "data" / "distribute_data.py"
    program.write_text(program.read_text().replace("TRIES, PAUSE_S = 3, 5", "TRIES, PAUSE_S = 3, 0.1"))
    sent = tmp_path / "sent"
    for name, content in {"train.py": b"print()\n", "data/größe.bin": IMAGE, "run.sh": b"true\n"}.items():
        (sent / name).parent.mkdir(parents=True, exist_ok=True)
        (sent / name).write_bytes(content)
        (sent / name).chmod(0o755 if name == "run.sh" else 0o644)
        os.utime(sent / name, (PLACED_AT, PLACED_AT))
    (sent / "latest").symlink_to("data/größe.bin")
    return tmp_path / "n0"


def run(launcher, *words):
    argv = (sys.executable, launcher / "agent", "data.program_folder", *words)
    done = subprocess.run(argv, cwd=launcher, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def place(launcher):
    run(launcher, "place", launcher.parent / "sent", launcher / "program")


def spread(launcher, *machines):
    root = launcher.parent
    ways = f'here=$(pwd); echo "${{here##*/}} $1" >> {root}/ways; cd {root}/$1'
    way = ["sh", "-c", f'{ways}; eval "$(echo "$2" | sed "s,{root}/n[0-9],{root}/$1,g")"', "ssh"]
    return run(launcher, "spread", launcher, launcher / "program", json.dumps(way), *machines)


def contents(folder):
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mode & 0o100) for path in paths}


def test_a_run_has_a_copy_of_what_was_sent(launcher):
    place(launcher)
    assert contents(launcher / "program") == contents(launcher.parent / "sent")
    assert os.readlink(launcher / "program" / "latest") == "data/größe.bin"


def test_a_run_that_goes_on_keeps_what_its_program_wrote_beside(launcher):
    place(launcher)
    program = launcher / "program"
    (program / "out").mkdir()
    (program / "out" / "model").write_text("1")
    (program / "train.py").write_text("print(9)\n")
    (program / "data" / "größe.bin").unlink()
    kept = (program / "run.sh").stat().st_ino
    place(launcher)
    assert (program / "out" / "model").read_text() == "1"
    assert (program / "train.py").read_text() == "print()\n"
    assert (program / "data" / "größe.bin").read_bytes() == IMAGE
    assert (program / "run.sh").stat().st_ino == kept, "what is right is not copied again"


def test_what_a_killed_start_has_left_is_no_obstacle(launcher):
    (launcher / "program").mkdir()
    (launcher / "program" / "latest.new").symlink_to("nowhere")
    place(launcher)
    assert os.readlink(launcher / "program" / "latest") == "data/größe.bin"


def test_only_what_the_program_wrote_counts_as_its_files(launcher):
    place(launcher)
    program = launcher / "program"
    (program / "model").write_text("1")
    (program / "run.sh").write_text("false\n")
    assert [path.name for path in sorted(program.iterdir()) if path.is_file() and not is_sent(path)] == [
        *("latest", "model", "run.sh")
    ]


def test_each_machine_has_the_program_from_the_one_before(launcher):
    place(launcher)
    (launcher / "program" / "log.txt").write_text("written by the program")
    assert " bytes to n1 and n2 and n3 in " in spread(launcher, *MACHINES)
    for name in MACHINES:
        assert contents(launcher.parent / name / "program") == contents(launcher.parent / "sent")
        assert (launcher.parent / name / "program" / "latest").is_symlink()
    assert {"n1 n2", "n2 n3"} <= set((launcher.parent / "ways").read_text().splitlines())


def test_only_a_machine_that_lacks_something_gets_the_program_again(launcher):
    place(launcher)
    spread(launcher, *MACHINES)
    assert spread(launcher, *MACHINES) == ""
    beside = launcher.parent / "n2" / "program" / "model"
    beside.write_text("1")
    (launcher.parent / "n2" / "program" / "train.py").write_text("print(9)\n")
    assert " bytes to n2 in " in spread(launcher, *MACHINES)
    assert (launcher.parent / "n2" / "program" / "train.py").read_text() == "print()\n"
    assert beside.read_text() == "1"
