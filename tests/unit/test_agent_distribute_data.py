"""Data that go from machine to machine, with a folder for each machine; ssh is a script that goes to another folder."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from agent.nodes import chain_copy
from microcluster.remote.job import AGENT

MACHINES = ("n1", "n2", "n3", "n4")
CONTENT = bytes(range(256)) * 4096


@pytest.fixture
def launcher(tmp_path):
    """Return the launcher's folder, with programs and data; the other machines have the programs only."""
    for name in ("n0", *MACHINES):
        (tmp_path / name).mkdir()
        shutil.copytree(AGENT, tmp_path / name / "agent")
        program = tmp_path / name / "agent" / "data" / "distribute_data.py"
        program.write_text(program.read_text().replace("TRIES, PAUSE_S = 3, 5", "TRIES, PAUSE_S = 3, 0.1"))
    data = tmp_path / "n0" / "data"
    data.mkdir()
    for name in ("a", "b"):
        (data / name).write_bytes(CONTENT)
    sums = "".join(f"{hashlib.sha256(CONTENT).hexdigest()}  {name}\n" for name in ("a", "b"))
    (data / "SHA256SUMS").write_text(sums)
    return tmp_path / "n0"


def bring(launcher, trouble=":", machines=MACHINES):
    """Run the program as the supervisor does; ``trouble`` is what ssh does before it goes to machine ``$1``."""
    root = launcher.parent
    here = f"""here=$(pwd); echo "${{here##*/}} $1" >> {root}/ways; {trouble}"""
    go = f'cd {root}/$1; eval "$(echo "$2" | sed "s,{root}/n[0-9],{root}/$1,g")"'
    way = ["sh", "-c", f"{here}; {go}", "ssh"]
    argv = (sys.executable, launcher / "agent", "data.distribute_data", launcher / "data", json.dumps(way), *machines)
    return subprocess.run(argv, cwd=launcher, capture_output=True, text=True, check=False, timeout=60)


def brought_to(done):
    """Return the machines that got the data."""
    found = re.search("^brought [0-9]+ bytes to (.*) in ", done.stdout, re.MULTILINE)
    return found[1].split(" and ") if found else []


def has_all(launcher, machine):
    folder = launcher.parent / machine / "data"
    return all((folder / name).is_file() and (folder / name).read_bytes() == CONTENT for name in ("a", "b"))


def ways(launcher):
    """Return the streams between two machines other than those that the launcher asks its questions on."""
    return (launcher.parent / "ways").read_text().splitlines()


def test_each_machine_has_the_data_from_the_one_before(launcher):
    done = bring(launcher)
    assert (done.returncode, done.stderr) == (0, "")
    assert all(has_all(launcher, machine) for machine in MACHINES)
    assert [way for way in ways(launcher) if not way.startswith("n0")] == ["n1 n2", "n2 n3", "n3 n4"]
    size = 2 * len(CONTENT) + len((launcher / "data" / "SHA256SUMS").read_bytes())
    assert done.stdout.startswith(f"brought {size} bytes to n1 and n2 and n3 and n4 in ")


def test_names_of_any_kind_and_more_than_fit_into_an_argv_arrive(launcher):
    data = launcher / "data"
    names = [
        "-T",
        "* two  blanks",
        " first",
        "back\\nslash",
        "ö",
        "two\u2028parts",
        *(f"{number:0>250}" for number in range(9000)),
    ]
    for name in names:
        (data / "files" / name).parent.mkdir(exist_ok=True)
        (data / "files" / name).write_bytes(b"")
    empty = hashlib.sha256(b"").hexdigest()
    with (data / "SHA256SUMS").open("a") as sums:
        sums.writelines(f"{empty}  files/{name}\n" for name in names)
    done = bring(launcher, machines=("n1", "n2"))
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(os.listdir(launcher.parent / "n2" / "data" / "files")) == sorted(names)
    assert bring(launcher, machines=("n1", "n2")).stdout == "", "they have all of it"


def test_machines_that_have_them_get_nothing_and_are_no_part_of_the_chain(launcher):
    bring(launcher, machines=("n2",))
    (launcher.parent / "ways").unlink()
    assert brought_to(bring(launcher, machines=("n1", "n2", "n3"))) == ["n1", "n3"]
    assert [way for way in ways(launcher) if not way.startswith("n0")] == ["n1 n3"]
    assert brought_to(bring(launcher)) == ["n4"]
    assert bring(launcher).stdout == ""
    (launcher.parent / "n3" / "data" / "a").write_bytes(CONTENT[::-1])
    assert brought_to(bring(launcher)) == ["n3"]
    assert has_all(launcher, "n3"), "a file that was changed"


def test_a_link_that_breaks_in_its_middle_is_named_and_those_behind_it_get_the_data_all_the_same(launcher):
    breaks = "head -c 100000 > /dev/null; echo no route to host; exit 255"
    done = bring(launcher, f'case "${{here##*/}} $1" in "n1 n2") {breaks} ;; esac')
    assert (done.returncode, done.stderr) == (0, "")
    assert all(has_all(launcher, machine) for machine in MACHINES)
    assert done.stdout.startswith("the way to n2 broke: no route to host\n")
    assert brought_to(done) == list(MACHINES)
    assert "n3 n4" in ways(launcher)


def only_questions(does):
    """Let the ways on which a machine is asked for its files fail, and none on which data go."""
    return f'case "$2" in *sha256sum*) {does} ;; esac'


def test_a_machine_that_refuses_once_is_asked_again_and_one_that_cannot_be_asked_is_named(launcher):
    bring(launcher)
    once = launcher.parent / "refused"
    done = bring(launcher, only_questions(f'[ "$1" != n2 ] || [ -e {once} ] || {{ touch {once}; exit 255; }}'))
    assert (done.returncode, done.stdout) == (0, "")
    done = bring(launcher, only_questions('[ "$1" != n2 ] || { echo ssh: no route to host; exit 255; }'))
    assert (done.returncode, done.stderr) == (1, "the data did not arrive whole on n2 (ssh: no route to host)\n")


def tar_of_n2(launcher, does):
    """Return the trouble that lets n2 do something in place of unpacking, after the first 300,000 bytes."""
    tools = launcher.parent / "tools"
    tools.mkdir()
    (tools / "tar").write_text(f"#!/bin/sh\n{does}\n")
    (tools / "tar").chmod(0o755)
    return f'[ $1 = n2 ] && PATH="{tools}:$PATH"'


def test_a_machine_that_dies_in_the_middle_of_the_chain_is_named_and_the_next_try_is_whole(launcher):
    real, dead = shutil.which("tar"), launcher.parent / "dead"
    relay_dies = f'touch {dead}; head -c 300000 | {real} "$@"; kill -KILL $PPID; exit 2'
    done = bring(launcher, tar_of_n2(launcher, f'[ -e {dead} ] && exec {real} "$@"; {relay_dies}'))
    assert dead.exists()
    assert (done.returncode, done.stderr) == (0, "")
    assert all(has_all(launcher, machine) for machine in MACHINES)
    assert done.stdout.startswith("the way to n2 broke: ")
    assert brought_to(done) == list(MACHINES)


def test_a_disk_that_fills_up_in_the_middle_of_the_chain_is_the_reason_and_holds_up_nobody_else(launcher):
    full = "tar: a: Cannot write: No space left on device"
    done = bring(launcher, tar_of_n2(launcher, f"head -c 300000 > /dev/null; echo {full} >&2; exit 2"))
    assert (done.returncode, done.stderr) == (1, f"the data did not arrive whole on n2 ({full})\n")
    assert [machine for machine in MACHINES if has_all(launcher, machine)] == ["n1", "n3", "n4"]


def test_a_sender_whose_stream_nobody_takes_any_more_ends_at_once():
    endless = subprocess.Popen(["yes"], stdout=subprocess.PIPE)
    argv = (sys.executable, chain_copy.__file__, '["false"]', '["sh", "-c", "exit 255"]', "n1")
    try:
        done = subprocess.run(argv, stdin=endless.stdout, capture_output=True, text=True, timeout=60, check=False)
    finally:
        endless.kill()
    assert (done.returncode, done.stdout) == (1, f'{chain_copy.MARK}["n1", "exit code 255"]\n')


@pytest.mark.parametrize(("times", "code"), [(1, 0), (9, 1)], ids=["once", "always"])
def test_data_that_change_on_their_way_are_brought_once_more_and_then_the_machine_is_named(launcher, times, code):
    root = launcher.parent
    spoil = f"printf XX | dd of={root}/$1/data/a conv=notrunc 2>/dev/null; echo >> {root}/spoilt"
    often = f'[ "$(wc -l < {root}/spoilt)" -lt {times} ]'
    (root / "spoilt").touch()
    done = bring(launcher, f"""case "$1 $2" in "n2 "*chain_copy.py*) {often} && trap '{spoil}' EXIT ;; esac""")
    assert done.returncode == code
    assert done.stderr.startswith("the data did not arrive whole on n2 (its bytes are others") == bool(code)
    assert [machine for machine in MACHINES if not has_all(launcher, machine)] == (["n2"] if code else [])
    assert len((root / "spoilt").read_text()) == min(times, 2)


def test_what_travels_in_a_chain_grows_by_the_same_for_every_machine():
    lines = [chain_copy.start(["x"], ["true"], [f"10.0.0.{n}" for n in range(count)]).args for count in (2, 10, 18)]
    sizes = [len(os.fsencode(line[-1])) for line in lines]
    assert sizes[2] - sizes[1] < 2 * (sizes[1] - sizes[0])
