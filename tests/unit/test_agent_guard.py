"""The limits that a stack's guard gives to a run on its machines, in virtual time; and a run that is stopped by them."""

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from functools import partial
from types import SimpleNamespace

import pytest
import sample_spec
from supervised_run import (
    carry_out,
    end_run,
    events_of,
    hold,
    hurry,
    pid_of,
    shell_wait,
    start,
    wait_for_end,
    write_job,
)

from agent import kill_run
from agent.machine import is_locked
from agent.records import run_snapshot
from agent.run import queue_nodes
from agent.run.records import ACTIVITY, RUN_LOCK, WATCH_LOCK
from agent.supervise import guard
from agent.supervise.health_rules import Verdict
from microcluster.analysis.run_state import judge
from microcluster.core.polling import wait_until

LEASE_OVER = Verdict(guard.LEASE_OVER, "stopped by the guard: lease over", [])
HOUR_S = 3600.0
SAMPLE_S = 1.0
"""A busy computer answers later than a shorter one expects, and a gap between samples begins the count anew."""


class Clocks:
    """The clocks of a machine: the time of day, which somebody may set, and the seconds since its start."""

    def __init__(self):
        self.day, self.boottime, self.boot = 1.8e9, 5000.0, "first"

    def pass_by(self, seconds):
        self.day, self.boottime = self.day + seconds, self.boottime + seconds

    def reboot(self):
        self.boottime, self.boot = 0.0, "second"


@pytest.fixture
def clocks(monkeypatch):
    found = Clocks()
    monkeypatch.setattr(guard, "time", SimpleNamespace(time=lambda: found.day))
    monkeypatch.setattr(guard, "boottime", lambda: found.boottime)
    monkeypatch.setattr(guard, "boot", lambda: found.boot)
    return found


def guard_of(folder, stop_at=None, idle_s=None):
    given = {"stop_at": stop_at, "idle_s": idle_s}
    return guard.RunLimits(SimpleNamespace(path=lambda name: str(folder / name), spec=sample_spec.parsed(guard=given)))


def extend(folder, stop_at, left_s, idle_s=None):
    guard.main(str(folder), json.dumps({"stop_at": stop_at, "left_s": left_s, "idle_s": idle_s}))


def test_a_run_without_a_guard_is_never_stopped(tmp_path, clocks):
    run = SimpleNamespace(path=lambda name: str(tmp_path / name), spec=sample_spec.parsed())
    watched = guard.RunLimits(run)
    clocks.pass_by(1e6)
    assert watched.verdict(idle_s=1e6, armed=True) is None


def test_a_lease_ends_on_time_whatever_somebody_sets_the_clock_to(tmp_path, clocks):
    watched = guard_of(tmp_path, stop_at=clocks.day + HOUR_S)
    clocks.day += 5 * HOUR_S
    assert watched.verdict() is None
    clocks.day -= 10 * HOUR_S
    clocks.pass_by(HOUR_S - 1)
    assert watched.verdict() is None
    clocks.pass_by(1)
    assert watched.verdict() == LEASE_OVER


def test_an_extended_lease_also_holds_for_a_living_run_and_its_restart(tmp_path, clocks):
    watched = guard_of(tmp_path, stop_at=clocks.day + HOUR_S)
    extend(tmp_path, clocks.day + 3 * HOUR_S, 3 * HOUR_S)
    clocks.pass_by(2 * HOUR_S)
    assert watched.verdict() is None
    assert guard_of(tmp_path, stop_at=clocks.day - HOUR_S).verdict() is None
    clocks.pass_by(HOUR_S)
    assert watched.verdict() == LEASE_OVER


def test_what_is_left_counts_by_the_clock_of_whoever_gives_it(tmp_path, clocks):
    extend(tmp_path, clocks.day - 2 * HOUR_S, HOUR_S)  # The machine's clock is three hours ahead.
    watched = guard_of(tmp_path)
    assert watched.verdict() is None
    clocks.pass_by(HOUR_S)
    assert watched.verdict() == LEASE_OVER


def test_after_a_reboot_the_time_of_day_ends_the_lease(tmp_path, clocks):
    extend(tmp_path, clocks.day + HOUR_S, HOUR_S)
    clocks.pass_by(HOUR_S - 10)
    clocks.reboot()
    watched = guard_of(tmp_path)
    assert watched.verdict() is None
    clocks.pass_by(10)
    assert watched.verdict() == LEASE_OVER


@pytest.mark.parametrize(("armed", "limit_s"), [(True, 2700.0), (False, 7200.0)])
def test_an_idle_run_is_stopped_with_two_hours_until_its_first_step(tmp_path, clocks, armed, limit_s):
    watched = guard_of(tmp_path, idle_s=2700.0)
    assert watched.verdict(limit_s - 1, armed) is None
    why = f"stopped by the guard: nothing happened on any machine for {limit_s / 60:.0f} minutes"
    assert watched.verdict(limit_s, armed) == Verdict(guard.IDLE, why, [])
    assert watched.verdict(None, armed) is None, "a reading is missing"


def soon(folder, **limits):
    """Return the guard's section of a specification whose limits are reached soon."""
    hurry(folder, "supervise/prepare.py", "LOOK_EVERY_S = 15", "LOOK_EVERY_S = 0.2")
    return {"stop_at": None, "idle_s": None, **limits}


def test_a_program_that_reads_the_stop_word_saves_at_the_leases_end(folder):
    program = f"until [ -e {folder}/stopped ]; do sleep 0.1; done; echo saved > {folder}/last; sleep 0.5; echo saved"
    ending = shell_wait(folder, '"phase": "training"')
    write_job(folder, train=["sh", "-c", f"{ending}; touch {folder}/begun; {program}"], stop_grace_s=60)
    start(folder)
    wait_until("the training", (folder / "begun").exists, timeout_s=120, every_s=0.05)
    extend(folder, time.time(), 0.0)
    outcome = wait_for_end(folder)
    assert (outcome.state, outcome.cause, outcome.reason) == ("stopped", LEASE_OVER.cause, LEASE_OVER.sentence)
    assert (folder / "last").read_text() == "saved\n"
    assert end_run(folder)["ended"] == 0


def test_a_preparation_ends_with_the_lease(folder):
    outcome = carry_out(folder, data=["false"], stage=["sleep", "60"], guard=soon(folder, stop_at=time.time() + 1))
    assert (outcome.state, outcome.cause, outcome.reason) == ("stopped", LEASE_OVER.cause, LEASE_OVER.sentence)


def rests(folder):
    """Let nothing happen on the machines of a run."""
    readings = {"processors": [0, 0, 1], "network": {"cards": 0, "ssh": {}}, "typed": 0}
    facts = json.loads((folder / "facts.json").read_text())
    (folder / "facts.json").write_text(json.dumps({**facts, "activity": readings}))


def look(folder, idle_s=1.0):
    """Do what each look of a guard does on the launcher."""
    limits = json.dumps({"stop_at": None, "left_s": None, "idle_s": idle_s})
    subprocess.run([sys.executable, folder / "agent", "supervise.guard", folder, limits], check=True, timeout=60)


def is_watched(folder):
    return is_locked(str(folder / WATCH_LOCK))


def idle(folder, limit_s=60):
    """Return the run's state once its machines have been idle for a second."""

    def seen():
        outcome = judge(run_snapshot.observe(str(folder)))
        return outcome if outcome.idle_s is not None and outcome.idle_s >= 1.0 else None

    return wait_until("the count of machines at rest", seen, timeout_s=limit_s, every_s=0.1)


def stopped(folder):
    """Do as `fab stop` in the middle of a training."""
    hold(folder)
    start(folder)
    wait_until("a step", lambda: events_of(folder, "train"), timeout_s=120, every_s=0.1)
    assert end_run(folder)["left"] == []


def lost(folder):
    """Take its supervisor from a training."""
    hold(folder)
    start(folder)
    wait_until("a step", lambda: events_of(folder, "train"), timeout_s=120, every_s=0.1)
    os.kill(int(pid_of(folder)), signal.SIGKILL)
    kill_run.end("only", folder.name)


def failed_at_once(folder):
    write_job(folder, train=["false"], sample_every_s=SAMPLE_S)
    rests(folder)
    carry_out(folder)


@pytest.mark.parametrize(
    ("end", "state", "armed"),
    [
        (stopped, "stopped", True),
        (lost, "failed", True),
        (failed_at_once, "failed", False),
        (carry_out, "finished", True),
    ],
)
def test_machines_are_idle_after_any_end_of_a_run_with_nothing_left(folder, end, state, armed):
    write_job(folder, sample_every_s=SAMPLE_S)
    rests(folder)
    end(folder)
    look(folder)
    outcome = idle(folder)
    assert (outcome.state, outcome.armed) == (state, armed)
    assert end_run(folder) == {"ended": 0, "left": [], "unseen": ""}, "the proof of `fab stop`"
    assert is_watched(folder)


def test_idle_time_after_a_run_counts_unwatched_until_the_next_attempt(folder):
    write_job(folder, guard=soon(folder, idle_s=1.0), sample_every_s=SAMPLE_S)
    rests(folder)
    carry_out(folder)
    assert idle(folder).state == "finished"
    hold(folder)
    write_job(folder, last=6, guard={"stop_at": None, "idle_s": 600.0}, sample_every_s=60)
    start(folder)
    wait_until("its end", lambda: not is_watched(folder), timeout_s=30, every_s=0.1)
    look(folder, idle_s=600.0)
    wait_until("the training", lambda: events_of(folder, "train")[3:], timeout_s=120, every_s=0.1)
    assert not judge(run_snapshot.observe(str(folder))).idle_s
    assert not is_watched(folder), "its supervisor counts"


def test_idle_time_before_a_run_is_not_its_own_even_if_late(folder):
    late = f"""echo '{{"idle_s": 9e9, "armed": true}}' > {folder}/activity.json"""
    slow = ["sh", "-c", f"sleep 2; cat {folder}/facts.json"]
    train = ["sh", "-c", f"touch {folder}/begun; cp {folder}/activity.json {folder}/seen"]
    carry_out(folder, data=["sh", "-c", late], facts=slow, train=train)
    assert (folder / "begun").exists()
    assert not (folder / "seen").exists()


def gone(folder):
    (folder / "job.json").rename(folder / "elsewhere")


def started(folder):
    """Start another run on the same machines."""
    other = folder.parent / "another"
    other.mkdir()
    with (other / RUN_LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        wait_until("its end", lambda: not is_watched(folder), timeout_s=30, every_s=0.1)


@pytest.mark.parametrize("change", [partial(look, idle_s=None), gone, started])
def test_idle_time_is_counted_once_and_only_with_limit_and_run(folder, change):
    write_job(folder, sample_every_s=SAMPLE_S)
    look(folder)
    wait_until("the count", lambda: is_watched(folder), timeout_s=30, every_s=0.1)
    change(folder)
    wait_until("its end", lambda: not is_watched(folder), timeout_s=30, every_s=0.1)
    (folder / "job.json").touch()


def test_a_machine_that_does_not_answer_is_not_idle_after_a_run(folder):
    write_job(folder, sample_every_s=SAMPLE_S)
    rests(folder)
    carry_out(folder)
    look(folder)
    idle(folder)
    (folder / "facts.json").unlink()
    wait_until("the unknown", lambda: "null" in (folder / ACTIVITY).read_text(), timeout_s=30, every_s=0.1)
    assert judge(run_snapshot.observe(str(folder))).idle_s is None


def test_on_a_login_host_of_a_queue_nobody_counts_idle_time(folder, monkeypatch):
    begun = []
    monkeypatch.setattr(guard, "detach", lambda *words, **options: begun.append(words))
    extend(folder, None, None, idle_s=1.0)
    write_job(folder, addresses=[queue_nodes.placeholder(0), queue_nodes.placeholder(1)])
    extend(folder, None, None, idle_s=1.0)
    (folder / queue_nodes.GRANTED).write_text('[["sn01", "10.0.0.1"], ["sn02", "10.0.0.2"]]')
    extend(folder, None, None, idle_s=1.0)
    assert len(begun) == 1, "on a machine, and neither before the queue grants nodes nor afterwards"


def test_the_supervisor_stops_a_run_on_idle_machines_with_the_duration(folder):
    hurry(folder, "supervise/guard.py", "UNARMED_S = 7200.0", "UNARMED_S = 1.0")
    quiet = "until grep -q idle_s $0/activity.json && ! grep -q null $0/activity.json; do sleep 0.1; done; cp $0/activity.json $0/seen; sleep 60"
    write_job(folder, train=["sh", "-c", quiet, str(folder)], guard=soon(folder, idle_s=1.0), sample_every_s=3)
    rests(folder)
    outcome = carry_out(folder)
    assert (outcome.state, outcome.cause) == ("stopped", guard.IDLE)
    assert outcome.reason == "stopped by the guard: nothing happened on any machine for 0 minutes"
    assert set(json.loads((folder / "seen").read_text())) == {"idle_s", "armed"}
