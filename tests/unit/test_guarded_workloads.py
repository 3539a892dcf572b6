"""Workloads in two emulated accounts, held to their limits by guards that die, networks that are cut, and jobs that fail."""

from decimal import Decimal

import pytest
from guarded_workloads import Guests, flaws
from played_guard import guard, look

from microcluster.guard.decision import Limits


@pytest.mark.parametrize("seed", range(16))
def test_no_workload_costs_more_than_its_budget_outlasts_its_lease_goes_on_costing_or_loses_what_could_be_fetched(
    seed, tmp_path
):
    assert flaws(seed, tmp_path / "account") == []


def test_case_6_two_guards_and_a_person_at_once_cancel_each_of_200_orders_once(tmp_path):
    world, steps = Guests(tmp_path / "account", 200), []
    limits = Limits(lease_h=Decimal("0.25"))
    one, two = guard(world, limits), guard(world, limits, "watch@desk")
    world.fetch_s = 30
    world.during = {"stop": lambda: steps.append(look(two).verdict.step), "fetch": world.end}
    world.pass_(12 * 60)
    look(one)
    calls = [each for each in world.account.history("call") if each["method"].endswith("deleteObject")]
    paid = world.bill
    world.pass_(24 * 3600)
    assert (steps, len(calls), world.bill, world.is_over) == (["end"], 200, paid, True)
    assert "cancel" not in world.log and look(two).verdict.step == "over"
