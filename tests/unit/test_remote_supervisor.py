"""The supervisor and what ends a run, as real processes of this computer; `docker exec` is a script that runs its words here."""

from __future__ import annotations

import ast
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import types

import pytest
import sample_spec
from sample_spec import process
from tiny_checkpoint import DATA, INDEX

from agent import distribute_data, preflight, run_snapshot, supervisor
from agent import kill_run as ending
from agent.replica_store import MARK
from agent.replica_transfer import NONE
from agent.run_context import Run
from microcluster.analysis.run_state import judge
from microcluster.remote import job as remote_job

RANKS = [
    {"rank": n, "address": f"10.0.0.{n // 2}", "config": "c", "allreduce_s": 0.1, "host": f"gpu-{n // 2}"}
    for n in range(4)
]
FACTS = {
    "address": "10.0.0.0",
    "interfaces": ["eth0", "eth1"],
    "gpus": [],
    "free_bytes": 1 << 40,
    "shm_free_bytes": 1 << 30,
    "memlock_bytes": None,
    "data": "abc",
    "port": "",
}
TRAINER = """
import os, sys, time
first, last, logdir, pace = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], float(sys.argv[4])
if os.path.exists(logdir + "/checkpoint"):
    first = int(open(logdir + "/checkpoint").read().split("ckpt-")[1].split('"')[0])
    print("*** Restored checkpoint from {}/model.ckpt-{}. Resuming training".format(logdir, first), flush=True)
for step in range(first, last):
    print("*** Global step {}: ***     Train loss: 3.5 ".format(step), flush=True)
    time.sleep(pace)
deadline = time.time() + 120
while os.path.exists(logdir + "/../hold") and time.time() < deadline:
    time.sleep(0.05)
for part, content in ((".index", INDEX), (".meta", b""), (".data-00000-of-00001", DATA)):
    open("{}/model.ckpt-{}{}".format(logdir, last, part), "wb").write(content)
open(logdir + "/checkpoint", "w").write('model_checkpoint_path: "model.ckpt-{}"'.format(last))
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return the folder of a run of three steps, with the files that travel to the launcher."""
    tools, folder = tmp_path / "bin", tmp_path / "runs" / f"t{os.getpid():x}{time.time_ns() % 10**6}"
    tools.mkdir()
    (folder / "logdir").mkdir(parents=True)
    docker = tools / "docker"
    docker.write_text('#!/bin/sh\nwhile [ "$1" != box ]; do shift; done\nshift\nexec "$@"\n')
    docker.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    shutil.copytree(remote_job.AGENT, folder / "agent")
    hurry(folder, "run_context.py", "ASK_TRIES, ASK_PAUSE_S = 4, 10", "ASK_TRIES, ASK_PAUSE_S = 4, 0.1")
    (folder / "trainer.py").write_text(f"INDEX, DATA = {INDEX!r}, {DATA!r}\n{TRAINER}")
    write_job(folder)
    yield folder
    end_run(folder)


def write_job(folder, last=3, pace=0.0, **changes):
    said = "; ".join(f"echo '{preflight.MARK}{json.dumps(rank)}'" for rank in RANKS)
    train = [sys.executable, str(folder / "trainer.py"), "0", str(last), str(folder / "logdir"), str(pace)]
    started = {"processes": [process(*changes.pop("train", train))]}
    started["resume_processes"] = [process(*changes.pop("resume", train))]
    started["collective"] = [process(*changes.pop("preflight", ["sh", "-c", said]))]
    programs = {
        "facts": ["sh", "-c", f"cat {folder}/facts.json"],
        "bandwidth": ["sh", "-c", "echo 940.0"],
        "ended": ["cat", f"{folder}/ranks_ended.jsonl"],
        "copy": ["sh", "-c", f'echo "$@" >> {folder}/copies; echo \'{MARK}{{"bytes": 7}}\'', "copy"],
        "copied": ["echo", f"{MARK}{NONE}"],
        "place": ["sh", "-c", f'echo "$@" >> {folder}/placed', "place"],
    }
    address = f"sed s/10.0.0.0/$1/ {folder}/facts.json"
    changes.setdefault("ssh", ["sh", "-c", f'case $2 in *facts*) {address} ;; *) eval "$2" ;; esac', "ssh"])
    (folder / "facts.json").write_text(json.dumps({**FACTS, "time": time.time()}))
    sample_spec.write(folder, **{"run": folder.name, "max_steps": last, **started, **programs, **changes})


def hurry(folder, name, usual, short):
    """Shorten a time of a program that travels."""
    program = folder / "agent" / name
    text = program.read_text()
    assert usual in text
    program.write_text(text.replace(usual, short))


def hold(folder):
    """Let the ranks train their last step for as long as this is there."""
    (folder / "hold").touch()
    return folder / "hold"


def once_told(folder, words):
    """Return the line of a shell that ends once the supervisor has written ``words`` down."""
    asked = f"grep -q '{words}' {folder}/progress.jsonl"
    return f"n=0; until {asked} || [ $n -ge 1200 ]; do n=$((n + 1)); sleep 0.1; done"


def start(folder):
    argv = (sys.executable, str(folder / "agent"), "supervisor", "start", str(folder))
    return subprocess.run(argv, capture_output=True, text=True, check=True, timeout=90).stdout.strip()


def wait_for_end(folder, limit_s=240):
    deadline = time.monotonic() + limit_s
    while run_snapshot.is_alive(str(folder)):
        assert time.monotonic() < deadline, (folder / "job.log").read_text()
        time.sleep(0.05)
    return judge(run_snapshot.observe(str(folder)))


def pid_of(folder, limit_s=120):
    """Return the supervisor's number, which it writes right after it has the lock that `start` waits for."""
    deadline = time.monotonic() + limit_s
    while not (folder / "supervisor.pid").exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return (folder / "supervisor.pid").read_text()


def end_run(folder, mode="only", patience_s=15):
    argv = (sys.executable, "-", str(folder.parent), mode, folder.name)
    text = (remote_job.AGENT / "kill_run.py").read_text()
    done = subprocess.run(
        argv,
        input=text.replace("TERM_WAIT_S = 15", f"TERM_WAIT_S = {patience_s}"),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return json.loads(done.stdout)


@pytest.mark.parametrize("path", remote_job.SHIPPED, ids=lambda path: str(path.relative_to(remote_job.AGENT)))
def test_what_travels_to_a_machine_is_python_3_5(path):
    ast.parse(path.read_text(), feature_version=(3, 5))


def test_a_run_goes_through_its_phases_to_a_finished_end(folder):
    assert start(folder) == "started"
    outcome = wait_for_end(folder)
    assert (outcome.state, outcome.step) == ("finished", 3)
    assert (folder / "exit_code").read_text() == "0\n"
    assert [rank["rank"] for rank in outcome.preflight] == [0, 1, 2, 3]
    events = [json.loads(line) for line in (folder / "progress.jsonl").read_text().splitlines()]
    assert [event["phase"] for event in events if event["event"] == "phase"] == ["preparing", "preflight", "training"]
    assert (folder / "placed").read_text() == "10.0.0.1\n"


def test_a_second_start_finds_the_first_alive(folder):
    hold(folder)
    assert [start(folder), start(folder)] == ["started", "alive"]


def test_somebody_who_looks_at_a_run_is_not_taken_for_its_supervisor(folder, monkeypatch, capsys):
    nothing = types.SimpleNamespace(Popen=lambda argv, **options: None, DEVNULL=-3)
    monkeypatch.setattr(supervisor, "subprocess", nothing)
    monkeypatch.setattr(supervisor, "SYSTEMD", str(folder / "nowhere"))
    monkeypatch.setattr(supervisor, "START_TIMEOUT_S", 0.2)
    monkeypatch.setattr(supervisor, "LOOK_TIMEOUT_S", 30)
    with (folder / "supervisor.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        looked = threading.Timer(0.3, fcntl.flock, (lock, fcntl.LOCK_UN))
        looked.start()
        supervisor.start(str(folder))
        looked.join()
    assert "alive" not in capsys.readouterr().out


def test_more_steps_go_on_from_the_checkpoint_and_every_host_gets_it(folder):
    start(folder)
    wait_for_end(folder)
    write_job(folder, last=6)
    start(folder)
    outcome = wait_for_end(folder)
    assert (outcome.state, outcome.step) == ("finished", 6)
    assert "Restored checkpoint" in (folder / "job.log").read_text()
    assert (folder / "placed").read_text().splitlines()[-1] == "10.0.0.1 logdir/checkpoint logdir/model.ckpt-3.index"


def test_more_steps_asked_for_while_it_runs_are_done_by_the_same_supervisor(folder):
    held = hold(folder)
    start(folder)
    pid = pid_of(folder)
    write_job(folder, last=5)
    assert start(folder) == "alive"
    held.unlink()
    assert wait_for_end(folder).step == 5
    assert (folder / "supervisor.pid").read_text() == pid


def test_a_phase_that_fails_ends_the_run_with_a_sentence(folder):
    write_job(folder, data=["false"], stage=["sh", "-c", "echo no space left; exit 28"])
    start(folder)
    outcome = wait_for_end(folder)
    assert outcome.state == "failed"
    assert "preparing the data set ended with exit code 28" in outcome.reason
    assert "no space left" in (folder / "job.log").read_text()


def test_data_that_did_not_arrive_stop_the_run_with_the_name_of_the_machine(folder):
    event = {"event": "chain_broken", "to": ["10.0.0.1"], "text": "no route to host"}
    said = f"echo '{distribute_data.MARK}{json.dumps(event)}'; echo the data did not arrive whole on 10.0.0.1; exit 1"
    write_job(folder, spread=["sh", "-c", said])
    start(folder)
    outcome = wait_for_end(folder)
    assert (outcome.cause, outcome.reason) == (
        "placing",
        "bringing the data to the other machines: the data did not arrive whole on gpu-1",
    )
    events = [json.loads(line) for line in (folder / "progress.jsonl").read_text().splitlines()]
    assert [event["to"] for event in events if event["event"] == "chain_broken"] == [["gpu-1"]]


def test_a_machine_whose_disk_has_no_room_for_the_data_is_the_cause(folder):
    said = "the data did not arrive whole on 10.0.0.1 (tar: a: Cannot write: No space left on device)"
    write_job(folder, spread=["sh", "-c", f"echo '{said}'; exit 1"])
    start(folder)
    outcome = wait_for_end(folder)
    assert outcome.cause == "disk-full"
    assert "whole on gpu-1 (tar: a: Cannot write" in outcome.reason


def test_a_mistake_of_our_own_while_it_trains_ends_the_ranks_everywhere(folder):
    program = folder / "agent" / "readers" / "ranks.py"
    program.write_text(
        program.read_text().replace("        text = TAG.sub", "        raise ValueError(line)\n        text = TAG.sub")
    )
    ranks = ["sh", "-c", "sleep 60 >/dev/null 2>&1 & echo a line; sleep 60"]
    write_job(folder, train=ranks, end=["touch", str(folder / "swept")])
    start(folder)
    outcome = wait_for_end(folder)
    assert (outcome.cause, outcome.reason) == ("supervisor-failed", "the supervisor failed: ValueError('a line')")
    assert (folder / "swept").exists()
    assert end_run(folder)["ended"] == 0


def docker_that(folder, does, monkeypatch):
    """Let Docker do something else than answer, with its own folder in place of the system's."""
    docker = folder / "docker"
    docker.write_text(f"#!/bin/sh\n{does}\n")
    docker.chmod(0o755)
    (folder / "daemon.json").write_text(json.dumps({"data-root": str(folder / "root")}))
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setattr(ending, "DAEMON_FILE", str(folder / "daemon.json"))
    monkeypatch.setattr(ending, "DOCKER_TIMEOUT_S", 1)


SILENT = [
    ("exec sleep 60", "no answer after 1 s"),
    ("echo 'Cannot connect to the Docker daemon at unix:///var/run/docker.sock.' >&2; exit 1", "Cannot connect"),
]


@pytest.mark.parametrize(("does", "said"), SILENT)
def test_where_docker_does_not_answer_it_is_said_what_was_not_looked_at(tmp_path, monkeypatch, does, said):
    docker_that(tmp_path, does, monkeypatch)
    found, why = ending.container_of("box")
    assert found is None
    assert f"Docker does not answer ({said}" in why
    assert why.endswith("the processes in container box without the run's mark were not looked at")


@pytest.mark.parametrize(("does", "said"), SILENT)
def test_where_docker_does_not_answer_its_containers_are_known_from_its_folder(tmp_path, monkeypatch, does, said):
    docker_that(tmp_path, does, monkeypatch)
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
    marked = {**os.environ, "MICROCLUSTER_RUN": folder.name}
    rank = subprocess.Popen(["sleep", "60"], env=marked)
    assert end_run(folder)["ended"] == 1
    assert rank.wait(10) == -signal.SIGTERM


def test_a_machine_that_lets_nobody_in_is_named_with_what_ssh_said(folder):
    write_job(folder, place=["sh", "-c", "echo 'root@10.0.0.1: Permission denied (publickey).'; exit 255"])
    start(folder)
    outcome = wait_for_end(folder)
    assert outcome.cause == "placing"
    assert outcome.reason.endswith("to gpu-1: root@10.0.0.1: Permission denied (publickey).")


def test_ranks_that_answer_from_elsewhere_stop_the_run_before_it_trains(folder):
    write_job(folder, addresses=["10.0.0.0", "10.0.0.9"])
    start(folder)
    outcome = wait_for_end(folder)
    assert outcome.cause == "preflight"
    assert "10.0.0.1" in outcome.reason
    assert not list((folder / "logdir").iterdir())


SLEEPS = ["sh", "-c", "exec sleep 60"]


def impatient(folder, idle_s=3):
    hurry(folder, "idle.py", "IDLE_S = 900", f"IDLE_S = {idle_s}")
    hurry(folder, "idle.py", "LOOK_EVERY_S = 15", "LOOK_EVERY_S = 0.2")
    hurry(folder, "idle.py", "PROBE_TIMEOUT_S = 30", "PROBE_TIMEOUT_S = 10")


@pytest.mark.parametrize(
    ("step", "doing"),
    [
        ({"spread": SLEEPS}, "bringing the data to gpu-1"),
        ({"data": ["false"], "stage": SLEEPS}, "preparing the data set"),
        ({"data": ["sh", "-c", "[ $0 = has ] && exec sleep 60; false"]}, "asking gpu-1 for the data"),
        (
            {"data": ["sh", "-c", "case $0 in bring) exec sleep 60 ;; has) ;; *) false ;; esac"]},
            "bringing the data from gpu-1",
        ),
    ],
)
def test_a_preparation_in_which_nothing_moves_ends_with_the_step_and_the_node(folder, step, doing):
    impatient(folder)
    way = 'case $2 in *conv=fsync*) exec sleep 60 ;; *) eval "$2" ;; esac'
    write_job(folder, ssh=["sh", "-c", way, "ssh"], **step)
    start(folder)
    outcome = wait_for_end(folder)
    assert (outcome.state, outcome.cause) == ("failed", "preparing-stalled")
    assert outcome.reason == f"{doing}: nothing was read, written or computed for 3 s; no write ends on gpu-1"
    assert end_run(folder)["ended"] == 0


def test_a_preparation_that_is_slow_but_moves_is_left_alone(folder):
    impatient(folder, idle_s=5)
    moves = "for n in 1 2 3 4 5 6 7 8 9; do head -c 2000000 /dev/zero > /dev/null; sleep 1; done"
    write_job(folder, spread=["sh", "-c", moves])
    start(folder)
    assert wait_for_end(folder).state == "finished"


def test_stopping_ends_every_process_of_the_run_and_no_other(folder):
    write_job(folder, last=600, pace=0.1)
    start(folder)
    stranger = subprocess.Popen(["sleep", "60"], env={**os.environ, "MICROCLUSTER_RUN": folder.name + "0"})
    stubborn = subprocess.Popen(
        ["sh", "-c", "trap '' TERM; echo deaf; while :; do sleep 0.2; done"],
        env={**os.environ, "MICROCLUSTER_RUN": folder.name},
        stdout=subprocess.PIPE,
    )
    try:
        assert stubborn.stdout.readline() == b"deaf\n"
        answer = end_run(folder)
        assert stubborn.wait(60) == -9
        assert answer["left"] == []
        assert answer["ended"] >= 2
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()
        stubborn.stdout.close()
    assert judge(run_snapshot.observe(str(folder))).state == "stopped"


def test_a_supervisor_that_asks_the_machines_something_ends_as_soon_as_it_is_told_to(folder):
    checks = folder / "agent" / "preflight_checks.py"
    checks.write_text(checks.read_text().replace("BANDWIDTH_TIMEOUT_S = 25", "BANDWIDTH_TIMEOUT_S = 300"))
    asked = folder / "asked"
    write_job(folder, bandwidth=["sh", "-c", f"echo $$ >> {asked}; exec sleep 300"])
    start(folder)
    deadline = time.monotonic() + 60
    while not (asked.exists() and asked.read_text()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert end_run(folder, patience_s=600)["left"] == []  # It would be killed only after that.
    assert wait_for_end(folder).state == "stopped"
    for pid in asked.read_text().split():
        os.kill(int(pid), signal.SIGKILL)


@pytest.mark.parametrize("before", ["", '{"event": "first"}\n', '{"event": "cut'])
def test_the_first_event_of_an_attempt_has_a_line_of_its_own_after_a_crash_too(folder, before):
    for name in ("progress.jsonl", "samples.jsonl"):
        (folder / name).write_text(before)
    run = Run(str(folder))
    run.emit({"event": "second"})
    run.emit({"event": "third"})
    run.sample({"event": "sample"})
    told = [event["event"] for event in run_snapshot.events_of(str(folder), "progress.jsonl") if event]
    assert told == [*(["first"] if "first" in before else []), "second", "third"]
    assert run_snapshot.events_of(str(folder), "samples.jsonl")[-1]["event"] == "sample"


def test_stopping_what_does_not_run_is_no_error(folder):
    assert end_run(folder) == {"ended": 0, "left": [], "unseen": ""}


@pytest.mark.parametrize("systemd", [True, False])
def test_a_supervisor_that_does_not_start_is_said_with_where_its_words_are(folder, monkeypatch, capsys, systemd):
    monkeypatch.setattr(supervisor, "SYSTEMD", str(folder if systemd else folder / "nowhere"))
    monkeypatch.setattr(supervisor, "START_TIMEOUT_S", 0.2)
    none = dict.fromkeys(("call", "check_call", "Popen"), lambda argv, **options: None)
    nothing = types.SimpleNamespace(**none, DEVNULL=-3)
    monkeypatch.setattr(supervisor, "subprocess", nothing)
    assert supervisor.start(str(folder)) == 1
    place = f"journalctl -u microcluster-{folder.name}" if systemd else str(folder / "supervisor.log")
    assert capsys.readouterr().out.strip().endswith(f"see {place}")


def test_a_supervisor_outlives_the_connection_that_started_it(folder):
    held = hold(folder)
    start(folder)
    pid = int(pid_of(folder))
    assert os.getsid(pid) == pid
    os.kill(pid, signal.SIGHUP)
    held.unlink()
    assert wait_for_end(folder).state == "finished"


def test_where_there_is_systemd_the_supervisor_is_a_unit_with_the_runs_mark_and_options_that_ubuntu_16_has(
    tmp_path, monkeypatch
):
    programs, run = tmp_path / "bin", tmp_path / "abc123"
    programs.mkdir()
    run.mkdir()
    sample_spec.write(run)
    log = f'echo "$(basename "$0") $*" >> {tmp_path}/words\n'
    (programs / "systemctl").write_text(f"#!/bin/sh\n{log}exit 1\n")  # As where no such unit is known.
    (programs / "systemd-run").write_text(f"#!/bin/sh\n{log}echo 0 > {run}/exit_code\n")
    for program in programs.iterdir():
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setattr(supervisor, "SYSTEMD", str(tmp_path))
    assert supervisor.start(str(run)) == 0
    freed, begun = (tmp_path / "words").read_text().splitlines()
    assert freed == "systemctl reset-failed microcluster-abc123.service"
    options = ["--quiet", "--unit=microcluster-abc123", "--setenv=MICROCLUSTER_RUN=abc123"]
    assert begun.split() == ["systemd-run", *options, sys.executable, str(run / "agent"), "supervisor", "run", str(run)]


AGAIN = (
    "import os, sys; left = int(sys.argv[1]); left and os.execv(sys.executable, [*sys.orig_argv[:-1], str(left - 1)])"
)


def test_a_process_that_is_just_starting_another_program_is_found(tmp_path):
    argv = [sys.executable, "-S", "-E", "-c", AGAIN, "100000"]
    with subprocess.Popen(argv, env={**os.environ, "MICROCLUSTER_RUN": tmp_path.name}) as restless:
        try:
            looks = [[pid for pid, _ in ending.find("only", tmp_path.name)] for _ in range(150)]
        finally:
            restless.kill()
    assert looks == [[restless.pid]] * 150
