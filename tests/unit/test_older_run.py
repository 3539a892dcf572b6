"""A running run that an older version began, under this version's commands: its own agent, from its folder, answers all of them."""

import hashlib
import json
import os
import pwd
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from unittest import mock

import pytest
from played_queue import PlayedQueue

from microcluster.config import stack as config
from microcluster.remote.errors import CommandError, Completed
from microcluster.remote.host import Host
from microcluster.setup import environment
from tests.recorded import older

KEPT = {"softlayer": "model.ckpt-200.index", "paperspace": "step-200.pt", "queue": "step-200.pt"}
KEYS = {
    "softlayer": (
        "softlayer.conf",
        "[softlayer]\nusername = me\napi_key = c0ffee\nendpoint_url = {nobody}/xmlrpc/v3.1/\n",
    ),
    "paperspace": ("paperspace-api-key", "[paperspace]\napi_key = c0ffee\nendpoint_url = {nobody}/v1\n"),
}
NOBODY = "http://127.0.0.1:1"
LIVE = """import fcntl, signal, sys
file = open(sys.argv[1], "w")
fcntl.flock(file, fcntl.LOCK_EX)
print("locked", flush=True)
signal.pause()"""
"""Plays the run's supervisor."""
DOCKER = """#!/bin/sh
[ "$1" = exec ] || { echo "Error: no such container"; exit 1; }
shift 3
exec "$@"
"""
"""What runs in a container runs here; nothing else is known of any."""
SSH = """#!/bin/sh
case " $* " in
*" -G "*) echo "user $(id -un)"; echo "hostname 127.0.0.1" ;;
*" -O "*) ;;
*" -M "*) while [ "$1" != -S ]; do shift; done; : >"$2" ;;
*) for line; do :; done; exec sh -c "$(printf %s "$line" | sed 's/^bash -l /bash /')" ;;
esac
"""
"""Plays OpenSSH to a login host, which is this computer; a login shell would set another path."""


class Rented:
    """An older rental, whose machines are folders of this computer."""

    def __init__(self, account: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.account, self.place, self.run = account, place, secrets.token_hex(6)
        self.home, self.disk = place / "home", place / "disk-0"
        self.names = {"RUN": self.run, "DISK": str(self.disk), "DRIVE": str(place / "drive"), "ACCOUNT": "499673"}
        self.folder = self.disk / "runs" / self.run
        older.leave_home(account, self.home, **self.names)
        older.leave_run(account, self.folder, **self.names)
        older.leave_project(account, place)
        monkeypatch.setenv("MICROCLUSTER_HOME", str(self.home))
        monkeypatch.setenv("HOME", str(self.home))
        monkeypatch.setattr("microcluster.run.unsaved_work.apart", lambda _, function, **options: function(**options))
        monkeypatch.setattr("microcluster.setup.engine.ensure_any", lambda *_: None)
        monkeypatch.setattr(config, "STACKS", place / "stacks")
        monkeypatch.setattr(environment, "ARTIFACTS", place / "artifacts")
        self.supervisor: subprocess.Popen[str] | None = None

    def fab(self, command: str, **options: object) -> int:
        """Run a command as `fab` does, in this process."""
        return getattr(import_module(f"microcluster.commands.{command}"), command).code(stack=older.STACK, **options)

    def begin(self) -> None:
        """Let a process be what carries out the run, until it is ended."""
        words = [sys.executable, "-S", "-c", LIVE, str(self.folder / "supervisor.lock")]
        mark = {**os.environ, "MICROCLUSTER_RUN": self.run}
        self.supervisor = subprocess.Popen(words, env=mark, stdout=subprocess.PIPE, text=True)
        assert self.supervisor.stdout.readline() == "locked\n"

    def end(self) -> None:
        if self.supervisor:
            self.supervisor.kill()
            self.supervisor.wait()
            self.supervisor.stdout.close()


def on_folders(rented: Rented, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every command on a machine run here, on the folder that is its disk."""
    tools = rented.place / "tools"
    tools.mkdir()
    (tools / "docker").write_text(DOCKER)
    (tools / "docker").chmod(0o755)
    path = f"{tools}:{Path(sys.executable).parent}:/usr/bin:/bin"

    def ended(host: Host, argv, given: bytes) -> subprocess.CompletedProcess[bytes]:
        own = str(rented.place / f"disk-{host.facts.name[-1]}")
        words = [word.replace(str(rented.disk), own) for word in argv]
        return subprocess.run(words, input=given, capture_output=True, env={"PATH": path}, check=False)

    def run(host, argv, *, stdin="", accept=(0,), **_limits):
        done = ended(host, argv, stdin.encode())
        completed = Completed(done.returncode, done.stdout.decode(), done.stderr.decode())
        if completed.exit_code not in accept:
            raise CommandError(str(host), tuple(argv), completed)
        return completed

    def output(host, argv, _doing, _silent_s=None, stdin=b""):
        done = ended(host, argv, stdin)
        assert done.returncode == 0, done.stderr
        yield done.stdout

    for name, does in (("connect", lambda _: None), ("run", run), ("output", output)):
        monkeypatch.setattr(Host, name, does)


def in_queue(rented: Rented, monkeypatch: pytest.MonkeyPatch) -> PlayedQueue:
    """Let the run's job be in a queue, with what was written down of it, on a login host that is this computer."""
    queue = PlayedQueue(rented.place / "site", monkeypatch)
    mark = (rented.home / "keys" / older.STACK / "mark").read_text().strip()
    name = f"mc{mark}{hashlib.sha256(str(rented.folder).encode()).hexdigest()[:5]}"
    asked = {"queue": "gpu", "nodes": 2, "processors": 20, "walltime": 28800, "interface": "eth0", "submitted": 1.0}
    record = {
        "name": name,
        "stack": older.STACK,
        "mark": mark,
        "run": rented.run,
        "folder": str(rented.folder),
        **asked,
    }
    records = queue.home / ".microcluster" / "jobs"
    records.mkdir(parents=True)
    (records / f"{name}.json").write_text(json.dumps(record) + "\n")
    (queue.here / "jobs").write_text(f"100 {name} R gpu {pwd.getpwuid(os.getuid()).pw_name}\n")
    (queue.here / "ssh").write_text(SSH)
    (queue.here / "ssh").chmod(0o755)
    (rented.home / "site.ssh").write_text("Host login\n")
    return queue


@pytest.fixture(autouse=True)
def _own_environment() -> Iterator[None]:
    """A command gives this process the backend of its home, which is another one in each test."""
    with mock.patch.dict(os.environ):
        for name in [name for name in os.environ if name.startswith("PULUMI_")]:
            del os.environ[name]
        yield


@pytest.fixture(params=older.ACCOUNTS)
def rented(request, tmp_path, monkeypatch) -> Iterator[Rented]:
    found = Rented(request.param, tmp_path, monkeypatch)
    if found.account == "queue":
        in_queue(found, monkeypatch)
    else:
        file, text = KEYS[found.account]
        (found.home / "account").mkdir(mode=0o700)
        (found.home / "account" / file).write_text(text.format(nobody=NOBODY))
        (found.home / "account" / file).chmod(0o600)
        on_folders(found, monkeypatch)
        found.begin()
    yield found
    found.end()


def test_status_says_that_the_run_is_at_work_and_how_far(rented, capsys):
    assert rented.fab("status", as_json=True) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["run"], told["word"], told["state"], told["step"]) == (rented.run, "0a1b2c", "running", 240)
    assert (told["checkpoint"], told["train_loss"]) == (200, 1.6)


def test_fetch_brings_the_newest_checkpoint_and_a_report(rented, capsys):
    assert rented.fab("fetch") == 0, capsys.readouterr().err
    folder = rented.place / "artifacts" / older.STACK / f"{rented.run}-0a1b2c"
    name = KEPT[rented.account]
    assert (folder / "logdir" / name).read_bytes() == (rented.folder / "logdir" / name).read_bytes()
    assert (folder / "report.html").exists()


def test_stop_ends_its_processes_or_its_job_and_leaves_a_word(rented, capsys):
    wait_in_queue(rented)
    # One process table plays those of all machines: whichever finds the process leaves the word.
    (rented.place / "disk-1").symlink_to(rented.disk)
    assert rented.fab("stop", as_json=True) == 0, capsys.readouterr().err
    assert json.loads(capsys.readouterr().out)["stopped"]
    assert (rented.folder / "stopped").exists()
    if rented.supervisor:
        assert rented.supervisor.wait(timeout=30) == -signal.SIGTERM
    else:
        assert " C gpu" in (rented.place / "site" / "queue" / "jobs").read_text()


def wait_in_queue(rented: Rented) -> None:
    """Put a queue's job back to those that wait: nobody plays one that ends its processes itself."""
    jobs = rented.place / "site" / "queue" / "jobs"
    if jobs.exists():
        jobs.write_text(jobs.read_text().replace(" R gpu", " Q gpu"))


def test_its_agent_takes_new_limits_of_the_guard(rented):
    set_limits = import_module("microcluster.guard.actions").set_limits
    now = time.time()
    set_limits(older.STACK, now + 3600, None, now)
    assert json.loads((rented.folder / "guard.json").read_text())["stop_at"] == pytest.approx(now + 3600)


@pytest.mark.parametrize("rented", ["softlayer", "paperspace"], indirect=True)
def test_down_asks_before_it_loses_what_the_run_has_made(rented, capsys):
    assert rented.fab("down") == 2
    said = capsys.readouterr().err
    asked = (
        f"run {rented.run} lies on its machines only: step 240, its newest checkpoint at 200; nothing of it was fetched"
    )
    assert asked in said and "Nothing was changed" in said
    assert rented.supervisor.poll() is None


@pytest.mark.parametrize("rented", ["softlayer", "paperspace"], indirect=True)
def test_down_asks_only_for_what_came_after_a_fetch(rented, capsys):
    assert rented.fab("fetch") == 0
    capsys.readouterr()
    with (rented.folder / "progress.jsonl").open("a") as events:
        events.write(json.dumps({"event": "train", "step": 260, "loss": 1.4, "t": 1795891000.0}) + "\n")
    (rented.folder / "logdir" / "notes.txt").write_text("made since")
    assert rented.fab("down") == 2
    assert "fetched last at step 200" in capsys.readouterr().err
