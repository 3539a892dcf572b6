"""A run on this computer under a real supervisor; `docker exec` is a script that runs its command here."""

import json
import os
import shlex
import shutil
import subprocess
import sys
import time

import pytest
import sample_spec
from sample_spec import process

from agent import __main__ as agent_table
from agent import kill_run
from agent.formats.checkpoints.replica import MARK, NONE
from agent.launch import probe
from agent.records import run_snapshot
from agent.run import records
from microcluster.analysis.run_state import judge
from microcluster.core.files import write_whole
from microcluster.core.polling import wait_until
from microcluster.remote import job as remote_job
from tests.tiny_checkpoint import DATA, INDEX

PROGRAMS = {
    "facts": ("nodes.node_facts", 0, ()),
    "bandwidth": ("nodes.links", 0, ("send", "receive")),
    "copy": ("checkpoints.replica", 1, ("copy",)),
    "copied": ("checkpoints.replica", 1, ("copied",)),
    "bring": ("checkpoints.replica", 1, ("fetch",)),
    "gather": ("checkpoints.parts", 1, ("gather",)),
    "read": ("checkpoints.tensorflow", 0, ()),
    "spread": ("data.distribute_data", 0, ()),
    "end": ("kill_run", 0, ()),
}
"""The agent's programs: module, where the verb stands among its arguments, the verbs that are meant."""
SCRIPTS = {"data": "bring_data.sh", "place": "send_run_folder.sh"}
RANKS = [
    {"rank": n, "address": f"10.0.0.{n // 2}", "config": "c", "allreduce_s": 0.1, "host": f"gpu-{n // 2}"}
    for n in range(4)
]
FACTS = {
    "address": "10.0.0.0",
    "interfaces": ["eth0", "eth1"],
    "gpus": [],
    "gpu_words": "",
    "gpu_code": 0,
    "free_bytes": 1 << 40,
    "shm_free_bytes": 1 << 30,
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


RENAMED = """
import ctypes, os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        fields = open("/proc/self/stat").read().rpartition(")")[2].split()
        start, end = int(fields[47]), int(fields[48])
        ctypes.memset(start, 0, end - start)
        assert b"MICROCLUSTER_RUN" not in open("/proc/self/environ", "rb").read()
        os.closerange(0, 3)
        with open(sys.argv[1] + ".new", "w") as file:
            file.write(str(os.getpid()))
        os.rename(sys.argv[1] + ".new", sys.argv[1])
        time.sleep(300)
    os._exit(0)
while not os.path.exists(sys.argv[1]):
    time.sleep(0.05)
time.sleep(float(sys.argv[2]))
"""
"""A program that leaves a daemon behind, which has written over its environment as one does that gives itself another name. Arguments: the
file for the daemon's number, how long the program itself goes on."""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return the folder of a run of three steps, with the agent in it."""
    tools, folder = tmp_path / "bin", tmp_path / "runs" / f"t{os.getpid():x}{time.time_ns() % 10**6}"
    tools.mkdir()
    (folder / "logdir").mkdir(parents=True)
    docker = tools / "docker"
    docker.write_text('#!/bin/sh\nwhile [ "$1" != box ]; do shift; done\nshift\nexec "$@"\n')
    docker.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    shutil.copytree(remote_job.AGENT, folder / "agent")
    hurry(folder, "run/context.py", "ASK_TRIES, ASK_PAUSE_S = 4, 10", "ASK_TRIES, ASK_PAUSE_S = 4, 0.1")
    (folder / "trainer.py").write_text(f"INDEX, DATA = {INDEX!r}, {DATA!r}\n{TRAINER}")
    write_job(folder)
    yield folder
    kill_run.end("only", folder.name)
    (folder / "job.json").unlink()  # What counts how long its nodes are idle ends by itself.


def write_job(folder, last=3, pace=0.0, **changes):
    answers = "; ".join(f"echo '{probe.MARK}{json.dumps(rank)}'" for rank in RANKS)
    train = [sys.executable, str(folder / "trainer.py"), "0", str(last), str(folder / "logdir"), str(pace)]
    started = {"processes": [process(*changes.pop("train", train))]}
    started["resume_processes"] = [process(*changes.pop("resume", train))]
    started["collective"] = [process(*changes.pop("preflight", ["sh", "-c", answers]))]
    programs = {
        "facts": ["sh", "-c", f"cat {folder}/facts.json"],
        "bandwidth": ["sh", "-c", "echo 940.0"],
        "copy": ["sh", "-c", f"echo \"$@\" $(tr '\\0' ' ') >> {folder}/copies", "copy"],
        "copied": ["echo", f"{MARK}{NONE}"],
        "bring": ["true"],
        "gather": ["true"],
        "read": ["true"],
        "spread": ["true"],
        "end": ["true"],
        "data": ["true"],
        "place": ["sh", "-c", f'echo "$@" "$(cat {folder}/needed.json)" >> {folder}/placed', "place"],
    }
    for name, usual in programs.items():
        let_run(folder, name, changes.pop(name, usual))
    address = f"sed s/10.0.0.0/$1/ {folder}/facts.json"
    changes.setdefault(
        "ssh",
        [
            *("sh", "-c"),
            f"""export AT=$1; case $2 in
            *facts*) {address} ;; *ranks_ended*) cat {folder}/ended-$1 ;; *) eval "$2" ;; esac""",
            "ssh",
        ],
    )
    write_whole(folder / "facts.json", json.dumps({**FACTS, "time": time.time()}))
    sample_spec.write(folder, **{"run": folder.name, "max_steps": last, **started, **changes})


def let_run(folder, name, argv):
    """Let ``argv`` run where the run's agent starts one of its own programs, or one of the run's scripts."""
    if name in SCRIPTS:
        write_whole(folder / SCRIPTS[name], f'exec {shlex.join(argv)} "$@"\n')
        return
    module, at, verbs = PROGRAMS[name]
    file = folder / "agent" / f"{agent_table.PROGRAMS[module].replace('.', '/')}.py"
    program = f"""{file.read_text()}

def main(*words, usual=main):
    import os, sys
    if {verbs!r} and words[{at}] not in {verbs!r}:
        return usual(*words)
    sys.stdout.flush()
    os.execvp({argv[0]!r}, [*{argv!r}, *words[{at + 1 if verbs else 0}:]])
"""
    write_whole(file, program)  # A supervisor that is at work may start it just now.


def hurry(folder, name, usual, short):
    """Shorten a time limit of the agent."""
    program = folder / "agent" / name
    text = program.read_text()
    assert usual in text
    program.write_text(text.replace(usual, short))


def hold(folder):
    """Let the ranks train their last step for as long as this is there."""
    (folder / "hold").touch()
    return folder / "hold"


def shell_wait(folder, words):
    """Return a line of shell that waits until ``words`` are in the run's events."""
    there = f"grep -q '{words}' {folder}/progress.jsonl"
    return f"n=0; until {there} || [ $n -ge 1200 ]; do n=$((n + 1)); sleep 0.1; done"


def start(folder):
    argv = (sys.executable, str(folder / "agent"), "supervise.supervisor", "start", str(folder))
    return subprocess.run(argv, capture_output=True, text=True, check=True, timeout=90).stdout.strip()


def wait_for_end(folder, limit_s=240):
    deadline = time.monotonic() + limit_s
    while records.is_alive(str(folder)):
        assert time.monotonic() < deadline, (folder / "job.log").read_text()
        time.sleep(0.05)
    return judge(run_snapshot.observe(str(folder)))


def carry_out(folder, **job):
    """Write the job where anything of it is given, start the run, and return how it has ended."""
    if job:
        write_job(folder, **job)
    start(folder)
    return wait_for_end(folder)


def pid_of(folder, limit_s=120):
    """Return the supervisor's number, which it writes right after it has the lock that `start` waits for."""
    wait_until("the supervisor", (folder / "supervisor.pid").exists, timeout_s=limit_s, every_s=0.05)
    return (folder / "supervisor.pid").read_text()


def end_run(folder, mode="only", patience_s=15):
    argv = (sys.executable, "-", str(folder.parent), mode, folder.name)
    text = (remote_job.AGENT / "kill_run.py").read_text()
    patient = text.replace("TERM_WAIT_S = 15", f"TERM_WAIT_S = {patience_s}")
    return json.loads(subprocess.check_output(argv, input=patient, text=True, timeout=60))


def trains(folder, *lines, then="sleep 60"):
    """Let the ranks be a shell that prints ``lines``."""
    printed = "\n".join(f"echo '{line}'" for line in lines)
    write_job(folder, train=["sh", "-c", f"{printed}\n{then}"], stall_s=900)


def events_of(folder, *kinds):
    lines = (folder / "progress.jsonl").read_text().splitlines()
    return [event for event in map(json.loads, lines) if event["event"] in kinds]
