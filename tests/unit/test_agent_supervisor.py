"""The supervisor carries a run through its phases; real processes of this computer."""

import ast
import errno
import fcntl
import json
import os
import pwd
import signal
import sys
import threading
import types

import pytest
import sample_spec
from supervised_run import carry_out, end_run, events_of, hold, hurry, pid_of, start, wait_for_end, write_job

from agent.machine import try_lock
from agent.records import run_snapshot
from agent.run import event_summary
from agent.run.context import BALLAST_BYTES, Run
from agent.supervise import detached, supervisor
from agent.supervise.prepare import prepare
from microcluster.analysis.run_state import judge
from microcluster.core.polling import wait_until
from microcluster.remote import job as remote_job


@pytest.mark.parametrize("path", remote_job.SHIPPED, ids=lambda path: str(path.relative_to(remote_job.AGENT)))
def test_what_travels_to_a_machine_is_python_3_5(path):
    ast.parse(path.read_text(), feature_version=(3, 5))


def test_a_run_goes_through_its_phases_to_a_finished_end_and_more_steps_go_on_from_its_checkpoint_on_every_host(folder):
    assert start(folder) == "started"
    outcome = wait_for_end(folder)
    assert (outcome.state, outcome.step) == ("finished", 3)
    assert (folder / "exit_code").read_text() == "0\n"
    assert [rank["rank"] for rank in json.loads((folder / "preflight.json").read_text())["ranks"]] == [0, 1, 2, 3]
    assert [event["phase"] for event in events_of(folder, "phase")] == ["preparing", "preflight", "training"]
    outcome = carry_out(folder, last=6)
    assert (outcome.state, outcome.step) == ("finished", 6)
    assert "Restored checkpoint" in (folder / "job.log").read_text()
    given = [
        ["checkpoint", "model.ckpt-3.index"],
        ["model.ckpt-3.data-00000-of-00001", "model.ckpt-3.index", "model.ckpt-3.meta"],
    ]
    assert (folder / "placed").read_text().splitlines()[1] == f"10.0.0.1 {json.dumps(given)}"


def test_somebody_who_looks_at_a_run_is_not_taken_for_its_supervisor(folder, monkeypatch, capsys):
    nothing = types.SimpleNamespace(Popen=lambda argv, **options: None, DEVNULL=-3)
    monkeypatch.setattr(detached, "subprocess", nothing)
    monkeypatch.setattr(detached, "SYSTEMD", str(folder / "nowhere"))
    monkeypatch.setattr(supervisor, "START_TIMEOUT_S", 0.2)
    monkeypatch.setattr(supervisor, "LOOK_TIMEOUT_S", 30)
    with (folder / "supervisor.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        looked = threading.Timer(0.3, fcntl.flock, (lock, fcntl.LOCK_UN))
        looked.start()
        supervisor.start(str(folder))
        looked.join()
    assert "running" not in capsys.readouterr().out


def test_more_steps_asked_for_while_it_runs_are_done_by_the_same_supervisor_which_no_hangup_ends(folder):
    held = hold(folder)
    start(folder)
    pid = pid_of(folder)
    assert os.getsid(int(pid)) == int(pid)
    os.kill(int(pid), signal.SIGHUP)  # It outlives the connection that started it.
    write_job(folder, last=5)
    assert start(folder) == "running"
    held.unlink()
    assert wait_for_end(folder).step == 5
    assert (folder / "supervisor.pid").read_text() == pid


def test_a_supervisor_that_has_just_begun_is_not_taken_for_the_attempt_before_it(folder, monkeypatch):
    old = [
        {"event": "phase", "phase": "training", "t": 1.0},
        {"event": "alarm", "cause": "stalled", "text": "old", "t": 2.0},
    ]
    (folder / "progress.jsonl").write_text("".join(json.dumps(event) + "\n" for event in old))
    (folder / "phase").write_text("training")
    locks = []
    monkeypatch.setattr(
        supervisor, "detach", lambda *words: locks.append(try_lock(supervisor.lock_of(str(folder)), 1.0))
    )
    assert supervisor.start(str(folder)) == 0
    seen = judge(run_snapshot.observe(str(folder)))
    assert (seen.state, seen.phase_s) == ("preparing", 0.0)


DATA = "bringing the data to gpu-1 ended with exit code 1: the data did not arrive whole on gpu-1"
FULL = " (tar: a: Cannot write: No space left on device)"
PLACING = "bringing the configuration to gpu-1 ended with exit code 255: "
DENIED = "root@10.0.0.1: Permission denied (publickey)."


@pytest.mark.parametrize(
    ("step", "cause", "why"),
    [
        ({"spread": "echo 'the data did not arrive whole on 10.0.0.1'; exit 1"}, "placing", DATA),
        ({"spread": f"echo 'the data did not arrive whole on 10.0.0.1{FULL}'; exit 1"}, "disk-full", DATA + FULL),
        ({"place": f"echo '{DENIED}'; exit 255"}, "placing", PLACING + DENIED),
    ],
)
def test_a_machine_to_which_something_cannot_be_brought_is_named_with_what_was_said(folder, ended, step, cause, why):
    write_job(folder, **{name: ["sh", "-c", does] for name, does in step.items()})
    assert ended(prepare)[:2] == (cause, why)


def test_a_mistake_of_our_own_while_it_trains_ends_the_ranks_everywhere(folder):
    usual = "        text = DRAWING.sub"
    hurry(folder, "formats/logs/ranks.py", usual, "        raise ValueError(line)\n" + usual)
    ranks = ["sh", "-c", "sleep 60 >/dev/null 2>&1 & echo a line; sleep 60"]
    outcome = carry_out(folder, train=ranks, end=["sh", "-c", f"touch {folder}/swept"])
    assert (outcome.cause, outcome.reason) == ("supervisor-failed", "the supervisor failed: ValueError('a line')")
    assert (folder / "swept").exists()
    assert end_run(folder)["ended"] == 0


def test_a_supervisor_that_asks_the_machines_something_ends_as_soon_as_it_is_told_to(folder):
    hurry(folder, "supervise/preflight.py", "LINKS_TIMEOUT_S = 25", "LINKS_TIMEOUT_S = 300")
    asked = folder / "asked"
    write_job(folder, bandwidth=["sh", "-c", f"echo $$ >> {asked}; exec sleep 300"])
    start(folder)
    wait_until("a question", lambda: asked.exists() and asked.read_text(), timeout_s=60, every_s=0.05)
    assert end_run(folder, patience_s=600)["left"] == []  # It would be killed only after that.
    assert wait_for_end(folder).state == "stopped"


@pytest.mark.parametrize("before", ["", '{"event": "first"}\n', '{"event": "cut'])
def test_the_first_event_of_an_attempt_has_a_line_of_its_own_after_a_crash_too(folder, before):
    for name in ("progress.jsonl", "samples.jsonl"):
        (folder / name).write_text(before)
    run = Run(str(folder))
    run.emit({"event": "second"})
    run.emit({"event": "third"})
    run.sample({"event": "sample"})
    told = [event["event"] for event in event_summary.read(str(folder))[1] if event]
    assert told == [*(["first"] if "first" in before else []), "second", "third"]
    assert json.loads((folder / "samples.jsonl").read_text().splitlines()[-1])["event"] == "sample"


def test_room_is_kept_in_reserve_also_where_only_the_c_library_can_do_so(tmp_path, monkeypatch):
    def as_without_the_call(file, start, length):
        if fcntl.fcntl(file, fcntl.F_GETFL) & (os.O_APPEND | os.O_RDWR) != os.O_RDWR:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        os.pwrite(file, b"\0", start + length - 1)

    monkeypatch.setattr(os, "posix_fallocate", as_without_the_call)
    Run.keep_ballast(types.SimpleNamespace(path=lambda name: str(tmp_path / name)))
    assert (tmp_path / "ballast").stat().st_size == BALLAST_BYTES


def test_a_supervisor_that_does_not_start_is_said_with_where_its_words_are(folder, monkeypatch, capsys):
    monkeypatch.setattr(detached, "SYSTEMD", str(folder))
    monkeypatch.setattr(supervisor, "START_TIMEOUT_S", 0.2)
    none = dict.fromkeys(("call", "Popen"), lambda argv, **options: 0)
    nothing = types.SimpleNamespace(**none, DEVNULL=-3)
    monkeypatch.setattr(detached, "subprocess", nothing)
    assert supervisor.start(str(folder)) == 1
    assert capsys.readouterr().out.strip().endswith(f"see journalctl -u microcluster-{folder.name}")


@pytest.fixture
def by_systemd(tmp_path, monkeypatch):
    """A run's folder where systemd answers for root alone; each call is in the file of the words."""
    programs, run = tmp_path / "bin", tmp_path / "abc123"
    programs.mkdir()
    run.mkdir()
    sample_spec.write(run)
    log = f'#!/bin/sh\necho "$(basename "$0") $*" >> {tmp_path}/words\n'
    refused = "echo Interactive authentication required. >&2; exit 1"
    (programs / "systemctl").write_text(f"{log}exit 1\n")  # As where no such unit is known.
    (programs / "systemd-run").write_text(f'{log}[ -n "$AS_ROOT" ] || {{ {refused}; }}\necho 0 > {run}/exit_code\n')
    (programs / "sudo").write_text(f'{log}shift; AS_ROOT=yes exec "$@"\n')
    for program in programs.iterdir():
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setattr(detached, "SYSTEMD", str(tmp_path))
    return run


def words_of(run):
    """What the programs of the machine were called with."""
    return [line.split() for line in (run.parent / "words").read_text().splitlines()]


def test_with_systemd_the_supervisor_is_a_unit_with_the_mark_and_options_of_ubuntu_16(by_systemd, monkeypatch):
    run = by_systemd
    monkeypatch.setenv("AS_ROOT", "yes")
    monkeypatch.setattr(detached.os, "geteuid", lambda: 0)
    assert supervisor.start(str(run)) == 0
    freed, begun = words_of(run)
    assert freed == ["systemctl", "reset-failed", "microcluster-abc123.service"]
    options = "--quiet --unit=microcluster-abc123 --setenv=MICROCLUSTER_RUN=abc123"
    assert " ".join(begun) == f"systemd-run {options} {sys.executable} {run}/agent supervise.supervisor run {run}"


def test_a_user_who_is_not_root_has_sudo_start_the_unit_as_that_user(by_systemd, monkeypatch):
    run = by_systemd
    monkeypatch.setattr(detached.os, "geteuid", lambda: pwd.getpwnam("nobody").pw_uid)
    assert supervisor.start(str(run)) == 0
    *_, by_sudo, begun = words_of(run)
    assert by_sudo[:3] == ["sudo", "-n", "systemd-run"]
    assert "--uid=nobody" in begun


@pytest.mark.parametrize("without", ["rights", "sudo", "systemd-run"])
def test_where_systemd_starts_nothing_the_supervisor_has_its_own_session(by_systemd, monkeypatch, capsys, without):
    run = by_systemd
    monkeypatch.setattr(detached.os, "geteuid", lambda: pwd.getpwnam("nobody").pw_uid)
    (run.parent / "bin/sudo").write_text('#!/bin/sh\nshift; exec "$@"\n')
    if without != "rights":
        (run.parent / "bin" / without).unlink()
        monkeypatch.setenv("PATH", str(run.parent / "bin"))
    begun = []
    monkeypatch.setattr(supervisor, "START_TIMEOUT_S", 0.2)
    monkeypatch.setattr(detached.subprocess, "Popen", recorded_by(begun, detached.subprocess.Popen))
    assert supervisor.start(str(run)) == 1
    assert [options["start_new_session"] for argv, options in begun if argv[0] == sys.executable] == [True]
    assert capsys.readouterr().out.strip().endswith(f"see {run}/supervisor.log")


def recorded_by(calls, start):
    """Start whatever is no supervisor; that one is only written down."""

    def popen(argv, **options):
        calls.append((argv, options))
        return None if argv[0] == sys.executable else start(argv, **options)

    return popen
