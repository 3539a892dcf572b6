"""Orphans of a killed pulumi: known by their command line, their backend and the missing engine above them."""

import os
import subprocess
import sys

import pytest

from microcluster.lifecycle import orphans
from microcluster.lifecycle.orphans import Process

BACKEND = "file:///home/me/state"
ENGINE = "127.0.0.1:37293"


def process(pid: int, *argv: str, parent: int = 1, name: str = "python", backend: str | None = BACKEND) -> Process:
    return Process(pid, parent, "7", name, argv, backend)


def program(pid: int, stack: str, engine: str = ENGINE, parent: int = 1) -> Process:
    executed = "/engine/pulumi-language-python-exec"
    return process(pid, "python", executed, "--engine", engine, "--stack", stack, ".", parent=parent)


PROVIDER = process(10, "python", "-P", "-m", "microcluster.accounts.softlayer", ENGINE)
HOST = process(11, "/engine/pulumi-language-python", ENGINE)
STEP = process(12, "python", ".venv/bin/fab", "step.prepare-node")


@pytest.mark.parametrize("part", [PROVIDER, HOST, STEP, program(13, "local")], ids=str)
def test_each_part_of_a_dead_engine_is_found(part: Process) -> None:
    assert orphans.orphans([part], "local", BACKEND) == (part,)


@pytest.mark.parametrize(
    "other",
    [
        process(20, "python", "-m", "emulator", "serve"),
        process(21, "python", ".venv/bin/fab", "watch"),
        process(22, "grep", "pulumi-language-python-exec", "step.prepare-node"),
        process(23, "/engine/pulumi-language-python", ENGINE, backend="file:///home/other/state"),
        process(24, "/engine/pulumi-language-python", ENGINE, backend=None),
        process(25, "vim", "x", "y", "z", "microcluster.accounts.softlayer"),
    ],
    ids=lambda each: each.argv[0],
)
def test_what_only_looks_like_one_is_left_alone(other: Process) -> None:
    assert orphans.orphans([other], "local", BACKEND) == ()


def test_the_parts_of_a_living_engine_are_left_alone() -> None:
    engine = process(5, "pulumi", "up", name="pulumi")
    host = process(11, "/engine/pulumi-language-python", ENGINE, parent=5)
    assert orphans.orphans([engine, host, program(13, "local", parent=11)], "local", BACKEND) == ()


def test_the_parts_of_another_stacks_engine_are_left_alone() -> None:
    elsewhere = "127.0.0.1:5"
    other = [program(13, "p100", elsewhere), process(14, "/engine/pulumi-language-python", elsewhere)]
    assert orphans.orphans([*other, HOST], "local", BACKEND) == (HOST,)


def test_one_that_does_not_listen_is_killed_and_proved_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orphans, "TERM_S", 0.6)
    deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1, flush=True); time.sleep(60)"
    started = subprocess.Popen([sys.executable, "-c", deaf], stdout=subprocess.PIPE)
    assert started.stdout and started.stdout.readline()
    (found,) = (each for each in orphans._ours() if each.pid == started.pid)
    assert orphans.end([found]) == (found,)
    assert started.wait(60) == -9


def test_a_later_process_with_the_same_number_is_another_one() -> None:
    (me,) = (each for each in orphans._ours() if each.pid == os.getpid())
    earlier = Process(me.pid, me.parent, "0", me.name, me.argv, me.backend)
    assert orphans.end([earlier]) == ()
