"""`fab guard` with a played account: by whose clock it counts, what belongs to the rental, and whom it interrupts."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace

import pytest
from command_samples import CLUSTER, RUNNING, EmptyAccount
from played_guard import charge as billed
from pydantic_core import from_json, to_json

from microcluster.accounts.paperspace import bills, catalog
from microcluster.accounts.registry import AccountSettings
from microcluster.accounts.shared.account import Resource
from microcluster.accounts.shared.journal import Journal
from microcluster.accounts.shared.opened_account import OpenedAccount
from microcluster.accounts.shared.rental import Rental
from microcluster.command_line import apart
from microcluster.commands import guard
from microcluster.core.home import Home, Owner
from microcluster.core.polling import wait_until
from microcluster.guard import actions, installed, limits, texts, watching
from microcluster.guard.decision import Limits, Verdict
from microcluster.guard.records import GuardLog, Record, log_of
from microcluster.lifecycle import locks
from microcluster.rental.account import Place
from microcluster.run import status
from microcluster.setup.environment import PROJECT
from microcluster.setup.errors import CommandFailed, UserMistake

HOUR = timedelta(hours=1)
OWNER = Owner("v100", "1f3a9c42")


def charge(opened, closed=None, so_far=4, **more):
    """Return what a machine at $4 an hour was billed."""
    return billed(opened, opened, closed=closed, so_far=Decimal(so_far), **more)


class Played(EmptyAccount):
    """An account with these charges, whose clock this computer's is ahead of."""

    def __init__(self, *charges, ahead_s=0.0, waiting=()):
        self.rows, self.ahead_s, self.waiting = charges, ahead_s, waiting

    clock_ahead_s = property(lambda self: self.ahead_s)

    def charges(self, owner, known=(), *, exact=True):
        return self.rows

    def resources(self, owner=None, kind=None):
        return self.waiting


@pytest.fixture
def look(monkeypatch, tmp_path):
    """Return what a guard finds in an account."""
    monkeypatch.setenv("MICROCLUSTER_HOME", str(tmp_path))
    monkeypatch.setattr(actions, "asked_apart", lambda stack: RUNNING)

    def found(account, limits):
        monkeypatch.setattr(actions, "account_and_owner", lambda stack, settings: (OpenedAccount(account), OWNER))
        monkeypatch.setattr(actions, "place_of", lambda stack, settings: Place(AccountSettings("softlayer"), OWNER))
        return watching.guard_of("v100", limits, "timer").see()

    return found


@pytest.mark.parametrize("ahead", [2 * HOUR, -2 * HOUR])
@pytest.mark.parametrize("zone", [UTC, timezone(timedelta(hours=2), "CEST")])
def test_case_3_with_a_wrong_clock_leases_end_by_the_accounts(look, ahead, zone):
    there = datetime.now(UTC) - ahead
    account = Played(charge((there - HOUR).astimezone(zone)), ahead_s=ahead.total_seconds())
    assert look(account, Limits(lease_h=Decimal("1.5"))).verdict.step == "record"
    assert look(account, Limits(lease_h=Decimal("1.1"))).verdict.step == "end"


@pytest.mark.parametrize("ahead", [2 * HOUR, -2 * HOUR])
def test_case_3_with_a_wrong_clock_paperspace_hours_follow_the_account(monkeypatch, tmp_path, ahead):
    monkeypatch.setenv("MICROCLUSTER_HOME", str(tmp_path))
    made = datetime.now(UTC) - ahead - 2.5 * HOUR
    network = {
        "id": "n1",
        "name": f"net.{OWNER}.microcluster",
        "dtCreated": made.isoformat(),
        "region": "East Coast (NY2)",
    }
    market = SimpleNamespace(
        under=lambda kind, owner: [network] if kind == bills.NETWORK else [],
        journal=lambda owner: Journal(owner.stack, owner.mark, "1"),
        clock_ahead_s=ahead.total_seconds(),
    )
    assert [each.so_far for each in bills.charges(market, OWNER)] == [3 * catalog.NETWORK.per_hour]


def test_a_kept_drive_begins_no_rental_and_costs_only_since_then(look):
    now = datetime.now(UTC)
    drive = charge(
        now - 900 * HOUR,
        so_far=9,
        **{"id": "2", "hourly": False, "per_hour": Decimal("0.01"), "per_month": Decimal(50), "is_kept": True},
    )
    before = charge(now - 900 * HOUR, now - 890 * HOUR, so_far=40, id="3")
    record = look(Played(drive, before, charge(now - 2 * HOUR, so_far=12)), Limits(lease_h=Decimal(30)))
    assert record.verdict.step == "record"
    assert (record.rental.began, round(record.rental.spent, 2)) == (now - 2 * HOUR, Decimal("12.02"))


def test_programs_read_the_sum_spent_and_since_when(look):
    began = datetime.now(UTC) - 2 * HOUR
    found = texts.facts(look(Played(charge(began, so_far=12)), Limits(lease_h=Decimal(30))))["rental"]
    shown = [found[key] for key in ("began", "spent", "per_hour", "currency")]
    assert shown == [began.isoformat(), 12, 4, "USD"]


def test_a_job_restarted_by_its_queue_keeps_its_node_hours(look):
    now = datetime.now(UTC)
    of = {"id": "77", "currency": "node hours"}
    rows = charge(now - 9 * HOUR, now - 6 * HOUR, so_far=12, **of), charge(now - HOUR, so_far=4, **of)
    assert look(Played(*rows), Limits(lease_h=Decimal(30))).rental.spent == 16


def test_case_10_an_order_not_yet_billed_is_not_the_end(look):
    waiting = Resource("guest", "7", "gpu-0", OWNER)
    assert look(Played(waiting=[waiting]), Limits(lease_h=Decimal(1))).verdict.step == "record"
    assert look(Played(), Limits(lease_h=Decimal(1))).verdict.step == "over"


def test_case_10_a_missing_price_under_a_budget_is_an_alarm(look):
    account = Played(charge(datetime.now(UTC), so_far=0, per_hour=Decimal(0)))
    verdict = look(account, Limits(budget=Decimal(100))).verdict
    assert (verdict.step, verdict.code, verdict.warning) == ("warn", 1, "price")


def test_a_command_stopped_by_ctrl_z_releases_the_stack_for_a_limit(tmp_path):
    home = Home(tmp_path, tmp_path)
    # A shell that starts the tests in the background has SIGINT ignored in all that they start.
    script = f"""
import signal, time
from microcluster.core.home import Home
from microcluster.lifecycle.locks import alone_on
signal.signal(signal.SIGINT, signal.default_int_handler)
with alone_on("v100", "make up", Home(Path({str(tmp_path)!r}), Path({str(tmp_path)!r}))):
    print("held", flush=True)
    time.sleep(600)
"""
    words = (sys.executable, "-c", script)
    with subprocess.Popen(words, cwd=PROJECT, stdout=-1, stderr=-1, process_group=0) as holder:
        holder.stdout.readline()
        os.kill(holder.pid, signal.SIGSTOP)
        locks.interrupt_holder("v100", home)
        try:
            assert holder.wait(60)
        finally:
            holder.kill()
    assert not locks.is_busy("v100", home)


def test_a_timer_that_cannot_be_removed_does_not_disturb_an_end(monkeypatch, tmp_path, capsys):
    now = datetime.now(UTC)
    ended = Record("guard@here", now, Verdict("over", "the job has finished: cancelled"), Rental(now, (charge(now),)))

    def refuse():
        raise CommandFailed("installing or removing a guard: no space is left.")

    monkeypatch.setenv("MICROCLUSTER_HOME", str(tmp_path))
    for name, value in {
        "limits_known": lambda stack, home: Limits(),
        "guard_of": lambda *args: SimpleNamespace(log=GuardLog(tmp_path), who="guard@here", look=lambda: ended),
    }.items():
        monkeypatch.setattr(watching, name, value)
    monkeypatch.setattr(installed.timer, "timer", lambda job: SimpleNamespace(remove=refuse))
    assert guard.guard.code(stack="v100", as_json=True) == 0
    assert json.loads(capsys.readouterr().out)["verdict"]["why"] == "the job has finished: cancelled"


def test_a_timer_stays_until_it_has_seen_a_rental_end(monkeypatch, tmp_path):
    now = datetime.now(UTC)
    log, over = GuardLog(tmp_path), Record("timer@here", now, Verdict("over", "nothing is billed"), Rental(now))
    log.write(over)
    log.write(replace(over, who="watch@desk", rental=Rental(now, (charge(now),))))
    installed_for = ["v100"]
    for name, value in {
        "limits_known": lambda stack, home: Limits(),
        "guard_of": lambda *args: SimpleNamespace(log=log, who="timer@here", look=lambda: over),
    }.items():
        monkeypatch.setattr(watching, name, value)
    monkeypatch.setattr(watching.installed, "remove", lambda stack, home: installed_for.remove(stack))
    assert watching.look_once("v100") == 0
    assert installed_for == ["v100"]
    log.write(replace(over, rental=Rental(now, (charge(now),))))
    watching.look_once("v100")
    assert installed_for == []


def test_a_guard_that_waits_for_another_command_says_so(tmp_path):
    hands = actions.RentalActions("v100", Home(tmp_path, tmp_path))
    with locks.alone_on("v100", "make up", hands.home):
        assert hands.cancel(pressing=False) == "another command works on stack v100"


@pytest.mark.parametrize("is_known", [False, True])
def test_a_stack_without_limits_is_told_how_to_write_them(monkeypatch, tmp_path, is_known):
    home, now = Home(tmp_path, tmp_path), datetime.now(UTC)
    if is_known:
        log_of("local", home).write(Record("timer@here", now, Verdict("over", "nothing is billed"), Rental(now)))
    monkeypatch.setattr(limits, "account_and_owner", lambda stack: (OpenedAccount(EmptyAccount()), OWNER))
    with pytest.raises(UserMistake, match="Nothing limits stack local: .*has no microcluster:guard. Write for example"):
        limits.limits_known("local", home)


def test_who_looks_often_leaves_no_connection_to_the_machines_open(monkeypatch):
    open_now = []
    launcher = SimpleNamespace(close=open_now.pop)
    monkeypatch.setattr(status, "find_cluster", lambda stack: CLUSTER)
    monkeypatch.setattr(status, "launcher_of", lambda cluster: open_now.append(launcher) or launcher)
    monkeypatch.setattr(status.job, "observe", lambda launcher, cluster: RUNNING)
    assert (status.outcome_or_none("v100"), open_now) == (RUNNING, [])


def test_what_a_machine_says_of_a_run_comes_whole_from_another_process():
    assert actions.OUTCOME.validate_python(from_json(to_json(RUNNING))) == RUNNING


def test_what_takes_too_long_or_fails_is_ended_and_unknown(tmp_path, monkeypatch):
    monkeypatch.setattr(apart, "GRACE_S", 0.2)
    began = tmp_path / "began"
    assert apart.apart(20.0, os.system, command=f"trap '' INT TERM; echo $$ > {began}; sleep 600") is None
    stat = Path("/proc", began.read_text().strip(), "stat")

    def is_over() -> bool:
        return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == "Z"

    wait_until("the kernel to end what was killed", is_over, timeout_s=60, every_s=0.1)
    assert apart.apart(60, json.loads, s="{") is None
    assert apart.apart(60, json.loads, s="[42]") == [42]


def test_only_a_guard_that_has_been_at_work_for_long_is_interrupted(tmp_path, monkeypatch):
    interrupted = []
    hands = actions.RentalActions("v100", Home(tmp_path, tmp_path))
    monkeypatch.setattr(locks, "interrupt_holder", lambda stack, home: interrupted.append(stack))
    with locks.alone_on("v100.guard", "fab guard", hands.home):
        with hands.alone(longest_s=1800) as mine:
            assert (mine, interrupted) == (False, [])
        path, then = hands.home.locks / "v100.guard.lock", time.time() - 1900
        os.utime(path, (then, then))
        with hands.alone(longest_s=1800):
            assert interrupted == ["v100.guard"]
