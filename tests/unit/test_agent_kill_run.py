"""What ends a run on one machine: real processes of this computer."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from supervised_run import RENAMED, end_run, start, write_job

from agent import kill_run as ending
from agent.records import run_snapshot
from microcluster.analysis.run_state import judge
from microcluster.core.polling import wait_until
from microcluster.remote.job import AGENT

ROOT = Path(__file__).parents[2]


def marked(run):
    return {**os.environ, "MICROCLUSTER_RUN": run}


def docker_that(folder, does, monkeypatch):
    """Let Docker do something else than answer, with its own folder in place of the system's."""
    docker = folder / "docker"
    docker.write_text(f"#!/bin/sh\n{does}\n")
    docker.chmod(0o755)
    (folder / "daemon.json").write_text(json.dumps({"data-root": str(folder / "root")}))
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setattr(ending, "DAEMON_FILE", str(folder / "daemon.json"))
    monkeypatch.setattr(ending, "DOCKER_TIMEOUT_S", 1)


@pytest.mark.parametrize(
    ("does", "said"),
    [
        ("exec sleep 60", "no answer after 1 s"),
        ("echo 'Cannot connect to the Docker daemon at unix:///var/run/docker.sock.' >&2; exit 1", "Cannot connect"),
    ],
)
def test_a_docker_that_does_not_answer_has_its_folder_asked_or_it_is_said_so(tmp_path, monkeypatch, does, said):
    docker_that(tmp_path, does, monkeypatch)
    found, why = ending.container_of("box")
    assert found is None
    assert f"Docker does not answer ({said}" in why
    assert why.endswith("the processes in container box without the run's mark were not looked at")
    for identity, name in (("aa11", "/other"), ("bb22", "/box")):
        (tmp_path / "root" / "containers" / identity).mkdir(parents=True)
        known = {"ID": identity, "Name": name, "State": {"Pid": 77}}
        (tmp_path / "root" / "containers" / identity / "config.v2.json").write_text(json.dumps(known))
    assert ending.container_of("box") == (("bb22", 77), "")


@pytest.mark.parametrize("does", ["echo 'Error: No such container: box' >&2; exit 1", "exit 127"])
def test_a_machine_without_the_container_has_nothing_in_it_that_could_be_left(tmp_path, monkeypatch, does):
    docker_that(tmp_path, does, monkeypatch)
    assert ending.container_of("box") == (None, "")


def test_a_disk_that_takes_no_word_does_not_keep_a_run_from_being_stopped(folder):
    (folder / "stopped").mkdir()
    rank = subprocess.Popen(["sleep", "60"], env=marked(folder.name))
    assert end_run(folder)["ended"] == 1
    assert rank.wait(10) == -signal.SIGTERM


def test_stopping_ends_every_process_of_the_run_and_no_other(folder):
    write_job(folder, last=600, pace=0.1)
    start(folder)
    stranger = subprocess.Popen(["sleep", "60"], env=marked(folder.name + "0"))
    deaf = ["sh", "-c", "trap '' TERM; echo deaf; while :; do sleep 0.2; done"]
    stubborn = subprocess.Popen(deaf, env=marked(folder.name), stdout=subprocess.PIPE)
    try:
        assert stubborn.stdout.readline() == b"deaf\n"
        answer = end_run(folder, patience_s=4)
        assert stubborn.wait(60) == -9
        assert answer["left"] == []
        assert answer["ended"] >= 2
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()
        stubborn.stdout.close()
    assert judge(run_snapshot.observe(str(folder))).state == "stopped"
    assert end_run(folder) == {"ended": 0, "left": [], "unseen": ""}, "stopping what does not run is no error"


@pytest.mark.parametrize("deaf", ["", "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)"])
def test_stopping_ends_a_process_that_has_written_over_its_mark_too(folder, deaf):
    daemon = folder / "daemon"
    argv = (sys.executable, AGENT, "launch.rank_wrapper", str(folder / "words"), sys.executable, "-c", deaf + RENAMED)
    rank = subprocess.Popen((*argv, str(daemon), "300"), env=marked(folder.name))
    wait_until("the daemon", daemon.exists, timeout_s=60, every_s=0.05)
    answer = end_run(folder, patience_s=3)
    assert answer["left"] == []
    rank.wait(60)
    wait_until("the daemon's burial", lambda: not Path("/proc", daemon.read_text()).exists(), timeout_s=60)


AGAIN = "import os, sys; n = int(sys.argv[1]); n and os.execv(sys.executable, [*sys.orig_argv[:-1], str(n - 1)])"


def test_a_process_that_is_just_starting_another_program_is_found(tmp_path):
    argv, run = [sys.executable, "-S", "-E", "-c", AGAIN, "100000"], str(tmp_path)
    with subprocess.Popen(argv, env=marked(run)) as restless:
        try:
            found = [pid for pid, _ in ending.find("only", run)]
            blind = sum(ending.environment(str(restless.pid)) == [b""] for _ in range(20_000))
        finally:
            restless.kill()
    assert (found, blind) == ([restless.pid], 0)


LOOKS_WHILE_ITS_CHILD_BEGINS = """
import os, subprocess, sys, threading
from agent import kill_run
begun, go_on = os.pipe(), os.pipe()

def wait():
    os.write(begun[1], b".")
    os.read(go_on[0], 1)

def start():
    subprocess.run([sys.executable, "-c", "pass"], env={}, preexec_fn=wait, check=True)

child = threading.Thread(target=start)
child.start()
os.read(begun[0], 1)
print(kill_run.end("only", "abcdef012345"))
os.write(go_on[1], b".")
child.join()
"""


def test_a_child_that_has_not_begun_its_own_program_is_not_taken_for_a_process_of_the_run():
    """A supervisor that asks other machines whether they have ended would end its own questions."""
    given = {**marked("abcdef012345"), "PYTHONPATH": str(ROOT)}
    argv = [sys.executable, "-c", LOOKS_WHILE_ITS_CHILD_BEGINS]
    asks = subprocess.run(argv, env=given, capture_output=True, text=True, timeout=60, check=True)
    assert asks.stdout == "({}, {})\n"
