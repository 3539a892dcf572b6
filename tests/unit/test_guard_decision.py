"""What a guard does next, rule by rule; the first that fits counts."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from played_guard import BEGAN, RATE, charge, ran

from microcluster.accounts.shared.account import Extension, Terms
from microcluster.accounts.shared.rental import Rental
from microcluster.analysis.run_state import Outcome
from microcluster.core.catalog.billing_rules import Rate
from microcluster.guard.decision import (
    CANCEL_S,
    FETCH_S,
    STOP_S,
    Begun,
    Limits,
    Seen,
    decide,
    first_end,
)
from microcluster.setup.errors import FAILED, UNKNOWN

RUNNING = ran("running", idle_s=0.0, armed=True)


def after(hours: float) -> datetime:
    return BEGAN + timedelta(hours=hours)


def rental(hours: float, *since: datetime, rate: Rate = RATE, **more: object) -> Rental:
    """Return what two machines from the beginning, or those since these moments, were billed so many hours later."""
    now = after(hours)
    return Rental(now, tuple(charge(each, now, rate, **more) for each in since or (BEGAN, BEGAN)))


def seen(hours: float, run: Outcome = RUNNING, **more: object) -> Seen:
    return Seen(after(hours), more.pop("rental", rental(hours)), run, **more)


def test_an_unreadable_account_is_a_priced_alarm_and_never_an_end():
    verdict = decide(Limits(lease_h=Decimal(30)), seen(1, unread="nobody answers."))
    assert (verdict.step, verdict.code) == ("warn", UNKNOWN)
    assert "nobody answers; it was billed at $8.00/h" in verdict.why


def test_at_the_limit_an_unreadable_account_prevents_no_stop_or_fetch():
    verdict = decide(Limits(lease_h=Decimal(30)), seen(30, unread="nobody answers"))
    assert (verdict.step, verdict.code, verdict.reason) == ("end", UNKNOWN, "lease")


def test_an_account_that_was_never_read_is_not_taken_for_empty():
    assert decide(Limits(lease_h=Decimal(1)), seen(9, rental=None, unread="nobody answers")).code == UNKNOWN


@pytest.mark.parametrize(("trouble", "more"), [("account", {"unread": "nobody answers"}), ("machines", {"run": None})])
def test_a_state_unknown_for_longer_than_allowed_is_an_alarm(trouble, more):
    limits = Limits(lease_h=Decimal(30), blind_s=600)
    codes = [decide(limits, seen(5, **more, since={trouble: after(5) - timedelta(seconds=s)})).code for s in (599, 601)]
    assert codes == [UNKNOWN, FAILED]


def test_the_accounts_key_alone_can_enforce_lease_and_budget():
    limits = Limits.of_account().held_by(Terms(1, 180, 10_000))
    assert (limits.lease_h, limits.budget) == (3, 100)
    assert [decide(limits, seen(hours, None)).step for hours in (1, 3)] == ["record", "end"]
    assert decide(limits, seen(1, None)).code == 0


def test_a_rental_without_billing_items_or_waiting_orders_is_over():
    assert decide(Limits(lease_h=Decimal(1)), seen(9, rental=Rental(after(9)))).step == "over"
    waiting = Rental(after(9), is_coming=True)
    assert decide(Limits(budget=Decimal(100)), seen(9, rental=waiting)).step == "record"


def test_cancelled_and_still_billed_is_cancelled_again_and_finally_an_alarm():
    begun = Begun("idle", after(1), has_cancelled=True)
    early, late = (decide(Limits(lease_h=Decimal(9)), seen(hours, ran("stopped"), begun=begun)) for hours in (1.2, 1.6))
    assert [(each.step, each.code) for each in (early, late)] == [("end", 0), ("end", 1)]


@pytest.mark.parametrize("run", [RUNNING, None, ran("preparing")], ids=["busy", "blind", "preparing"])
def test_a_lease_nearly_over_ends_a_busy_and_a_silent_run(run):
    reserve_h = (STOP_S + FETCH_S + CANCEL_S) / 3600
    limits = Limits(lease_h=Decimal(30))
    before, then = (decide(limits, seen(30 - reserve_h + step, run)) for step in (-0.5 / 3600, 0))
    assert (before.step, then.step, then.fetch_by) == ("warn", "end", after(30))


@pytest.mark.parametrize(("cause", "step"), [("lease-over", "end"), (None, "record")])
def test_machines_a_minute_ahead_may_stop_the_program_for_the_lease(cause, step):
    stopped, minute_h = ran("stopped", cause=cause), 1 / 60
    assert decide(Limits(lease_h=Decimal("0.5")), seen(0.4 - minute_h, stopped)).step == step


def test_of_a_short_lease_the_reserve_takes_a_fifth():
    end = first_end(Limits(lease_h=Decimal("0.5")), rental(0.1))
    assert (end.begin, end.last) == (after(0.4), after(0.5))


def test_a_budget_ends_with_one_started_hour_in_reserve():
    """Of $80 at $8 an hour nine hours are used; the tenth is kept for an end that takes longer than it should."""
    for hours in (0, 3.3, 8.7):
        assert first_end(Limits(budget=Decimal(80)), rental(hours)).last == after(9)


def test_machines_with_other_start_minutes_count_their_own_hours():
    end = first_end(Limits(budget=Decimal(40)), rental(0.6, BEGAN, after(0.5)))
    assert end.last == after(4)
    assert rental(0.6, BEGAN, after(0.5)).spent_at(end.last) + 8 <= 40


@pytest.mark.parametrize("hours", [0.99, 59.9 / 60 + 2, 3, 60.1 / 60 + 3])
def test_in_any_minute_a_budgets_end_leaves_one_started_hour(hours):
    found = rental(hours)
    last = first_end(Limits(budget=Decimal(100)), found).last
    assert found.spent_at(last) + 8 <= 100 < found.spent_at(last + timedelta(seconds=1)) + 8


def test_a_budget_pays_a_months_first_hour_where_months_bill_alone():
    opened = datetime(2026, 11, 30, 20, 50, tzinfo=UTC)
    rate = Rate(Decimal(4), by_month=True)
    for minutes in (1, 100, 189, 191, 200):
        now = opened + timedelta(minutes=minutes)
        found = Rental(now, (charge(opened, now, rate),))
        last = first_end(Limits(budget=Decimal(30)), found).last
        assert found.spent_at(last) + 4 <= 30 < found.spent_at(last + timedelta(seconds=1)) + 4


def test_a_budget_that_is_used_up_ends_at_once():
    verdict = decide(Limits(budget=Decimal(10)), seen(0.1))
    assert (verdict.step, verdict.reason) == ("end", "budget")
    assert "$8.00 of $10.00 is spent, and another started hour costs $8.00" in verdict.why


def test_of_lease_and_budget_the_earlier_one_counts():
    assert first_end(Limits(budget=Decimal(80), lease_h=Decimal(5)), rental(1)).reason == "lease"
    assert first_end(Limits(budget=Decimal(80), lease_h=Decimal(50)), rental(1)).reason == "budget"


def test_an_extension_moves_both_limits_and_makes_none_where_there_is_none():
    longer = Limits(budget=Decimal(80), lease_h=Decimal(5)).extended(Extension(Decimal(6), Decimal(50)))
    assert (longer.budget, longer.lease_h) == (130, 11)
    assert Limits().extended(Extension(Decimal(6), Decimal(50))) == Limits()


def test_a_finished_and_fetched_job_is_cancelled_unless_the_file_keeps_it():
    done = seen(1, ran("finished"))
    assert (decide(Limits(), done).step, decide(Limits(), done).fetch_by) == ("end", None)
    assert decide(Limits(cancels_done=False), done).step == "record"


@pytest.mark.parametrize(
    ("limits", "run", "trouble", "passed_s", "steps"),
    [
        (Limits(), ran("failed", "ranks-died"), "failed", (60, 1800), ["warn", "end"]),
        (Limits(lease_h=Decimal(9)), ran("stalled"), "stalled", (60, 600), ["warn", "end"]),
        (Limits(idle_s=60), ran("running", armed=True), "idle", (599, 600), ["record", "warn"]),
    ],
    ids=["a failed job keeps its machines", "a run that hangs", "a missing reading freezes idleness"],
)
def test_what_may_not_last_is_warned_of_before_it_ends_the_rental(limits, run, trouble, passed_s, steps):
    since = [{trouble: after(5) - timedelta(seconds=each)} for each in passed_s]
    verdicts = [decide(limits, seen(5, run, since=each)) for each in since]
    assert [each.step for each in verdicts] == steps
    assert run.state != "failed" or "cancelled in 29 min" in verdicts[0].why


def test_a_job_that_a_person_has_stopped_stays():
    assert decide(Limits(lease_h=Decimal(9)), seen(1, ran("stopped"))).step == "record"


def test_what_the_machines_have_stopped_for_idleness_is_fetched_and_cancelled():
    verdict = decide(Limits(lease_h=Decimal(9)), seen(1, ran("stopped", "idle")))
    assert (verdict.step, verdict.reason) == ("end", "idle")


@pytest.mark.parametrize(
    ("limits", "run", "idle_s", "steps"),
    [
        (Limits(idle_s=1800), RUNNING, (899, 900, 1799, 1800), ["record", "warn", "warn", "end"]),
        (Limits(idle_s=600), ran("running"), (1800, 7200), ["record", "end"]),
        (
            Limits(idle_s=1800, cancels_done=False),
            replace(RUNNING, state="finished"),
            (None, 899, 1799, 1800),
            ["record", "record", "warn", "end"],
        ),
    ],
    ids=["warned of at half of it", "two hours before the first step", "machines that are kept after the job"],
)
def test_idleness_ends_at_its_limit(limits, run, idle_s, steps):
    assert [decide(limits, seen(3, replace(run, idle_s=each))).step for each in idle_s] == steps


@pytest.mark.parametrize(
    ("limits", "hours", "warning"),
    [(Limits(budget=Decimal(100)), 9.5, "budget 100"), (Limits(lease_h=Decimal(10)), 8.1, "lease 10")],
)
def test_the_warning_at_80_percent_comes_again_after_an_extension(limits, hours, warning):
    assert decide(limits, seen(1)).step == "record"
    assert (decide(limits, seen(hours)).step, decide(limits, seen(hours)).warning) == ("warn", warning)


def test_a_begun_end_is_finished_though_its_reason_is_gone():
    begun = Begun("idle", after(1))
    assert decide(Limits(idle_s=600), seen(1.1, ran("stopped"), begun=begun)).reason == "idle"


def test_a_lease_before_a_queue_is_counted_in_node_hours():
    nodes = rental(2, rate=Rate(Decimal(1)), currency="node hours")
    end = first_end(Limits(lease_h=Decimal(10)), nodes)
    assert end.last == after(5)


def test_a_job_that_waits_in_a_queue_uses_up_no_lease():
    waiting = Rental(after(50), is_coming=True)
    assert decide(Limits(lease_h=Decimal(1)), seen(50, ran("preparing"), rental=waiting)).step == "record"


def test_parts_with_a_limit_in_a_month_cost_no_more_than_it():
    capped = rental(100, rate=Rate(Decimal(1), Decimal(20)))
    assert capped.spent_at(after(120)) == capped.spent == 40
