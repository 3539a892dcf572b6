"""Workloads in two emulated accounts, held to their limits by guards that die, networks that are cut, and jobs that fail."""

import pytest
from guarded_workloads import workload


@pytest.mark.parametrize("seed", range(16))
def test_no_workload_costs_more_than_its_budget_outlasts_its_lease_goes_on_costing_or_loses_what_could_be_fetched(
    seed, tmp_path
):
    assert workload(seed, tmp_path / "account").flaw == ""
