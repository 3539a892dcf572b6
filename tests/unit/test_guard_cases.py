"""The ten ways in which guards fail elsewhere, each in virtual time; the third is that a clock is wrong, see test_guard_hands.py."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest
from played_guard import BEGAN, World, guard, look, ran, watch

from microcluster.accounts.shared.account import Extension, Terms
from microcluster.accounts.shared.rental import Rental
from microcluster.guard.decision import NEVER_S, Limits
from microcluster.guard.records import GuardLog
from microcluster.setup.errors import FAILED, UNKNOWN

LEASE = Limits(lease_h=Decimal(3))
IDLE = Limits(idle_s=1800, lease_h=Decimal(30))
LEASE_ENDS = BEGAN + timedelta(hours=3)
SLACK = timedelta(minutes=5)


@pytest.fixture
def world():
    return World()


@pytest.mark.parametrize("rung", ["stop", "fetch", "cancel"])
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("limits", [LEASE, IDLE], ids=["lease", "idle"])
def test_case_1_another_guard_finishes_what_a_killed_guard_began(world, rung, when, limits):
    first, second = guard(world, limits), guard(world, limits, "watch@desk")
    world.fall_idle()
    world.dies_in = f"{when} {rung}"
    while world.dies_in:
        look(first)
        world.pass_(60)
    watch(world, second, hours=1)
    assert (world.is_over, world.fetched, world.saved) == (True, True, True)


@pytest.mark.parametrize("is_listed", [True, False])
def test_case_1_an_unfinished_cancellation_is_finished_though_nothing_is_billed(world, is_listed):
    world.dies_in = "after cancel"
    world.pass_(3 * 3600)
    look(guard(world, LEASE))
    assert world.is_over and not world.dies_in
    if not is_listed:
        world.rental = lambda: Rental(world.now)
    second = guard(world, LEASE, "watch@desk")
    assert [look(second).verdict.step for _ in range(2)] == ["over", "over"]
    assert world.log.count("cancel") == 2


def test_case_2_one_guard_acts_on_time_while_another_sleeps(world):
    awake, asleep = guard(world, LEASE), guard(world, LEASE, "timer@sleeper")
    look(asleep)
    watch(world, awake, hours=5)
    assert world.fetched and world.last_end <= LEASE_ENDS + SLACK
    assert look(asleep).verdict.step == "over"


def test_case_2_a_guard_that_wakes_late_acts_at_once(world):
    alone = guard(world, LEASE)
    look(alone)
    world.pass_(9 * 3600)
    look(alone)
    assert world.is_over and world.fetched and world.last_end < BEGAN + timedelta(hours=9, minutes=15)


def test_case_2_a_guard_that_begins_minutes_late_shortens_the_fetch(world):
    world.fetch_s, world.stop_s = 900, 110
    world.now = BEGAN + timedelta(hours=4.6, minutes=4.7)
    watch(world, guard(world, Limits(lease_h=Decimal("4.6"))), hours=1)
    assert world.last_end - BEGAN - timedelta(hours=4.6) < timedelta(minutes=10)


def test_case_2_a_late_working_guard_has_time_before_another_takes_over(world):
    first, second, steps = guard(world, LEASE), guard(world, LEASE, "timer@sleeper"), []
    look(first)
    world.pass_(9 * 3600)
    world.during = dict.fromkeys(("stop", "fetch", "cancel"), lambda: steps.append(second.look().verdict.step))
    look(first)
    assert (world.is_over, world.fetched, steps) == (True, True, ["end"] * 3)
    assert [world.log.count(each) for each in ("stop", "fetch", "cancel")] == [1, 1, 1]


@pytest.mark.parametrize("lie", [2, 20])
def test_case_4_an_accepted_cancellation_still_billed_is_repeated_until_over(world, lie):
    world.refusals = lie
    watch(world, guard(world, LEASE), hours=6)
    assert world.is_over and world.log.count("cancel") == lie + 1
    assert world.log.count("stop") == world.log.count("fetch") == 1


def test_case_4_half_an_hour_of_billing_after_cancellation_exits_with_alarm(world):
    world.refusals = 10**6
    assert watch(world, guard(world, LEASE), hours=5).verdict.code == 1


def test_a_refused_cancellation_is_told_in_the_accounts_words(world):
    world.refusals = 1
    world.pass_(3 * 3600)
    assert look(guard(world, LEASE)).verdict.why == "not everything was cancelled: still billed"


def test_case_5_without_the_account_all_is_fetched_now_and_cancelled_later(world):
    alone = guard(world, LEASE)
    watch(world, alone, hours=2)
    world.cuts.add("account")
    record = watch(world, alone, hours=2)
    assert (record.verdict.code, world.saved, world.fetched, world.is_over) == (1, True, True, False)
    assert "nobody answers; it was billed at $8.00/h" in record.verdict.why
    world.cuts.clear()
    watch(world, alone, hours=1)
    assert world.is_over


def test_case_6_two_guards_at_once_do_everything_once(world):
    one, two = guard(world, LEASE), guard(world, LEASE, "watch@desk")
    seen = []
    world.during["fetch"] = lambda: seen.append(two.look().verdict.step)
    watch(world, one, two, hours=5)
    assert (seen, world.is_over) == (["end"], True)
    assert [world.log.count(each) for each in ("stop", "fetch", "cancel")] == [1, 1, 1]


def test_case_6_a_guard_hung_on_the_lock_is_interrupted(world):
    world.holder = "watch@desk"
    watch(world, guard(world, LEASE), hours=5)
    assert world.is_over and "timer@laptop interrupts watch@desk" in world.log


def test_case_6_a_working_make_up_is_interrupted_only_for_a_limit(world):
    world.is_busy, world.run = True, ran("finished")
    watch(world, guard(world, LEASE), hours=2)
    assert not world.is_over and "stop" not in world.log
    watch(world, guard(world, LEASE), hours=2)
    assert world.is_over and world.last_end <= LEASE_ENDS + SLACK


def test_case_6_a_make_up_during_the_last_fetch_keeps_its_machines(world):
    world.run, alone = ran("finished"), guard(world, LEASE)
    world.during["fetch"] = lambda: setattr(world, "is_busy", True)
    watch(world, alone, hours=1)
    assert world.is_busy and "cancel" not in world.log


@pytest.mark.parametrize("moment", ["before", "meanwhile"])
def test_a_guard_that_waits_for_a_command_still_returns_its_record(world, moment):
    world.run, world.is_busy = ran("finished"), moment == "before"
    world.during["fetch"] = lambda: setattr(world, "is_busy", True)
    world.pass_(3600)
    record = look(guard(world, LEASE))
    assert (record.verdict.step, world.is_over) == ("end", False)


def test_an_account_that_falls_silent_after_the_fetch_is_an_alarm(world):
    world.run = ran("finished")
    world.during["fetch"] = lambda: world.cuts.add("account")
    world.pass_(3600)
    record = look(guard(world, LEASE))
    assert (record.verdict.code, world.fetched, world.is_over) == (UNKNOWN, True, False)


def test_case_6_an_extension_during_the_last_fetch_keeps_the_machines(world):
    alone = guard(world, LEASE)
    world.during["fetch"] = lambda: setattr(world, "extension", Extension(Decimal(6)))
    watch(world, alone, hours=4)
    assert not world.is_over and "cancel" not in world.log
    world.run = ran("running", idle_s=0.0, armed=True)
    watch(world, alone, hours=10)
    assert (
        world.is_over and BEGAN + timedelta(hours=8, minutes=40) < world.last_end <= BEGAN + timedelta(hours=9) + SLACK
    )


@pytest.mark.parametrize(
    "run",
    [ran("preparing", idle_s=0.0), ran("running", idle_s=0.0, armed=True), ran("running", idle_s=None)],
    ids=["tokenising", "evaluating", "a-reading-is-missing"],
)
def test_case_7_what_is_not_idle_by_all_readings_is_not_ended(world, run):
    world.run = run
    watch(world, guard(world, Limits(idle_s=600)), hours=24)
    assert not world.log.count("stop") and not world.is_over


def test_case_8_a_run_that_hangs_with_busy_gpus_is_ended(world):
    world.run = ran("stalled", "stalled", idle_s=0.0, armed=True)
    watch(world, guard(world, IDLE), hours=1)
    assert world.is_over and world.last_end < BEGAN + timedelta(minutes=25)


@pytest.mark.parametrize("trouble", ["stubborn", "torn", "lost", "slow"])
def test_case_9_an_ended_lease_always_cancels_and_names_the_losses(world, trouble):
    world.stubborn = trouble == "stubborn"
    world.fails = "node 1 is lost, and its checkpoint of step 400 is torn" if trouble == "torn" else ""
    world.cuts = {"machines"} if trouble == "lost" else set()
    world.fetch_s = 10**6 if trouble == "slow" else 300
    watch(world, guard(world, LEASE), hours=5)
    assert world.is_over and world.last_end <= LEASE_ENDS + SLACK
    assert any("not everything was fetched" in line or "may still run" in line for line in world.log)


def test_case_9_without_a_limit_nothing_is_cancelled_before_its_fetch(world):
    world.run, world.fails = ran("finished"), "the disk of this computer is full"
    alone = guard(world, Limits(lease_h=Decimal(30)))
    record = watch(world, alone, hours=2)
    assert (record.verdict.code, world.is_over) == (1, False)
    world.fails = ""
    watch(world, alone, hours=1)
    assert world.is_over and world.fetched


def test_case_10_silent_machines_are_reported_and_end_with_the_lease(world):
    world.cuts.add("machines")
    alone = guard(world, IDLE)
    early, late = watch(world, alone, hours=0.3), watch(world, alone, hours=1)
    assert (early.verdict.code, late.verdict.code) == (UNKNOWN, FAILED)
    assert not world.is_over and "have not answered for 1 h" in late.verdict.why
    watch(world, alone, hours=30)
    assert world.is_over and world.last_end <= BEGAN + timedelta(hours=30) + SLACK


def test_machines_of_an_ended_rental_are_not_asked(world):
    world.end()
    world.cuts.add("machines")
    record = look(guard(world, LEASE))
    assert record.verdict.step == "over" and "machines" not in record.began


def test_a_warning_is_said_once(world):
    alone = guard(world, Limits(lease_h=Decimal(10)))
    watch(world, alone, hours=9)
    assert sum("of 10 hours are over" in str(line) for line in world.log) == 1


def test_machines_learn_their_stop_time_and_again_after_an_extension(world):
    alone = guard(world, replace(LEASE, idle_s=7200.0))
    look(alone)
    assert world.holds_idle_s == 7200
    assert world.holds == LEASE_ENDS - timedelta(minutes=15)
    world.extension = Extension(Decimal(2))
    look(alone)
    assert world.holds == LEASE_ENDS + timedelta(hours=2) - timedelta(minutes=15)


@pytest.mark.parametrize("limits", [Limits(lease_h=Decimal(300)), Limits(lease_h=Decimal(300), keep_failed_s=60)])
@pytest.mark.parametrize("state", ["finished", "failed", "stopped"])
def test_machines_silent_for_64_hours_are_an_alarm_and_no_end(world, state, limits):
    """Finding A11: with `whenDone` and `keepFailed` the guard said "within its limits", and told nobody."""
    alone = guard(world, limits)
    world.cuts.add("machines")
    world.run = ran(state)
    record = watch(world, alone, hours=64, every_s=1800)
    assert (world.is_over, record.verdict.code, "stop" in world.log) == (False, FAILED, False)
    assert sum("$8.00/h" in str(line) for line in world.log) > 100


@pytest.mark.parametrize("every_s", [60, 3600, 5 * 3600])
def test_a_failed_job_ends_by_the_time_since_its_failure_was_seen(world, every_s):
    """Finding A13: any gap of more than three minutes began the count anew."""
    world.run = ran("failed", "rank-died")
    alone = guard(world, Limits(lease_h=Decimal(300)))
    look(alone)
    world.pass_(every_s)
    watch(world, alone, hours=2 * every_s / 3600 + 0.6, every_s=every_s)
    assert world.is_over and world.last_end <= BEGAN + timedelta(seconds=max(2 * every_s, 1800 + every_s), minutes=15)


def test_a_begun_end_goes_on_whatever_date_the_account_gives_it(world):
    """Finding A14: it was known by the moment at which the rental began."""
    world.terms, alone = Terms(int(BEGAN.timestamp())), guard(world, LEASE)
    world.run, world.fails = ran("finished"), "the disk is full"
    look(alone)
    begun = world.log_of_guards.newest().begun
    world.opened = [each - timedelta(seconds=1) for each in world.opened]
    look(alone)
    assert begun and world.log_of_guards.newest().begun.at == begun.at


def test_a_new_lease_in_the_stack_file_waits_for_the_next_up(world):
    world.terms = Terms(int(BEGAN.timestamp()))
    record = watch(world, guard(world, LEASE), hours=4)
    assert not world.is_over and record.verdict.step == "record"


def test_the_accounts_lease_counts_whatever_the_stack_file_says(world):
    world.terms = Terms(int(BEGAN.timestamp()), lease_minutes=60)
    watch(world, guard(world, Limits(lease_h=Decimal(300))), hours=2)
    assert world.is_over and world.last_end <= BEGAN + timedelta(hours=1) + SLACK


@pytest.mark.parametrize("state", ["stopped", "failed", "stalled", "finished"])
def test_idleness_ends_a_rental_whatever_the_state_of_its_run(world, state):
    """Finding A22: after `fab stop` nothing counted."""
    world.run = ran(state, idle_s=0.0, armed=True)
    world.fall_idle()
    limits = Limits(idle_s=1800, cancels_done=False, keep_failed_s=NEVER_S, lease_h=Decimal(300))
    if state == "stalled":
        world.run = replace(world.run, idle_s=1700.0)
    watch(world, guard(world, limits), hours=2)
    assert world.is_over and world.last_end <= BEGAN + timedelta(minutes=60)


def test_a_guard_whose_record_cannot_be_written_still_ends_the_lease(world, monkeypatch, tmp_path):
    """Finding A2: a full or read-only home stopped it before the cancellation."""
    closed = tmp_path / "file"
    closed.touch()
    world.log_of_guards = GuardLog(closed / "guards")
    watch(world, guard(world, LEASE), hours=5)
    assert world.is_over and world.last_end <= LEASE_ENDS + SLACK


@pytest.mark.parametrize("cut", ["", "account"])
def test_a_guards_finding_for_an_earlier_rental_does_not_count_now(world, cut):
    watch(world, guard(world, LEASE), hours=5)
    world.opened, world.run, world.cuts = [world.now], ran("stopped"), {cut}
    world.ended.clear()
    assert look(guard(world, LEASE)).verdict.step == ("warn" if cut else "record")
